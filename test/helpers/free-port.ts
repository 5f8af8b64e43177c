import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what systems give to those who do not choose, such as every connection that is opened beside this test. */
const [LOWEST, HIGHEST] = [12_000, 32_000];

/** A port that nobody listens on, and that nobody is given by chance while it is left and taken again. */
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
