import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { SwitchboardError } from '../../errors.ts';
import { wholeResponse } from './whole-response.ts';

const MAX_LATER = 100;
/**
 * Connections that have not completed the TLS handshake. They are limited apart from those of clients, so that strangers who
 * never complete it cannot take all places. The server's `handshakeTimeout` limits their time.
 */
export class Handshakes {
  private readonly max: number;
  private readonly open = new Map<string, Socket>();

  constructor(server: Server, max: number, isOwn: (socket: Socket) => boolean | Promise<boolean>) {
    this.max = max;
    server.maxConnections += max + MAX_LATER;
    const listeners = server.listeners('connection');
    server.removeAllListeners('connection');
    const accept = (socket: Socket) => {
      this.add(socket);
      for (const listener of listeners) listener.call(server, socket);
    };
    server.on('connection', (socket: Socket) => {
      socket.on('error', () => {});
      if (this.open.size < this.max) accept(socket);
      else void this.acceptOwn(socket, isOwn, accept);
    });
    server.on('secureConnection', (socket: Socket) => this.open.delete(keyOf(socket)));
    server.on('tlsClientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
      if (code === 'ERR_SSL_HTTP_REQUEST') this.open.get(keyOf(socket))?.end(wholeResponse(withoutTls()));
    });
  }

  private async acceptOwn(
    socket: Socket,
    isOwn: (socket: Socket) => boolean | Promise<boolean>,
    accept: (socket: Socket) => void,
  ): Promise<void> {
    const isAccepted = await isOwn(socket);
    if (socket.destroyed) return;
    // Nothing can be explained before the handshake.
    if (isAccepted) accept(socket);
    else socket.destroy();
  }

  private add(socket: Socket): void {
    const key = keyOf(socket);
    this.open.set(key, socket);
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
