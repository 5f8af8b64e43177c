import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

interface DatabaseProxy extends AsyncDisposable {
  url: string;
  readonly answers: number;
  /** Closes all connections, and rejects new ones. */
  cut(): void;
  /** Stops forwarding, but keeps the connections open. */
  freeze(): void;
  restore(): void;
}

/** A TCP proxy in front of a database that breaks on command. */
export async function proxyDatabase(url: string): Promise<DatabaseProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let state: 'open' | 'cut' | 'frozen' = 'open';
  let answers = 0;
  const server = createServer((near) => {
    sockets.add(near);
    near.on('error', () => {});
    if (state === 'cut') near.destroy();
    if (state !== 'open') return;
    const far = connect(Number(target.port), target.hostname);
    sockets.add(far);
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
    near.on('data', (chunk) => state === 'open' && far.write(chunk));
    far.on('data', (chunk) => {
      answers++;
      if (state === 'open') near.write(chunk);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const through = new URL(url);
  through.port = String((server.address() as { port: number }).port);
  const end = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    url: through.href,
    get answers() {
      return answers;
    },
    cut() {
      state = 'cut';
      end();
    },
    freeze() {
      state = 'frozen';
    },
    restore() {
      state = 'open';
      end();
    },
    async [Symbol.asyncDispose]() {
      end();
      server.close();
    },
  };
}
