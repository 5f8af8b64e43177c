import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral ports. */
const [LOWEST, HIGHEST] = [12_000, 32_000];

/** A free port outside the ephemeral range, so that no other process gets it by chance. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
