import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { SwitchboardError } from '../../errors.ts';
import { wholeResponse } from './whole-response.ts';

const MAX_CLOSING = 100;

/**
 * Connections that have not completed the TLS handshake. They are limited apart from those of clients: over the limit, the oldest
 * gives way, so that strangers who never complete it keep nobody out. The server's `handshakeTimeout` limits their time.
 */
export class Handshakes {
  private readonly max: number;
  private readonly open = new Map<string, Socket>();

  constructor(server: Server, max: number) {
    this.max = max;
    server.maxConnections += max + MAX_CLOSING;
    server.prependListener('connection', (socket: Socket) => this.add(socket));
    server.on('secureConnection', (socket: Socket) => this.open.delete(keyOf(socket)));
    server.on('tlsClientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
      if (code === 'ERR_SSL_HTTP_REQUEST') this.open.get(keyOf(socket))?.end(wholeResponse(withoutTls()));
    });
  }

  private add(socket: Socket): void {
    if (this.open.size >= this.max) {
      const [key, oldest] = this.open.entries().next().value!;
      this.open.delete(key);
      oldest.destroy();
    }
    const key = keyOf(socket);
    this.open.set(key, socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.open.get(key) === socket) this.open.delete(key);
    });
  }
}

/** The same for a connection and its encrypted form. */
function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return [remoteAddress, remotePort, localAddress, localPort].join(' ');
}

function withoutTls(): SwitchboardError {
  return new SwitchboardError(
    'invalid_request',
    'This port uses TLS: use an address that begins with https://. If a key was sent, replace it: it travelled unencrypted.',
  );
}
