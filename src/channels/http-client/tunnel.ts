import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { HttpProxy } from './proxy.ts';

const MAX_HEAD_BYTES = 16 * 1024;

/** Connects to a proxy. */
export function connectToProxy({ host, port, isSecure }: HttpProxy): Socket {
  const options = { host, port, noDelay: true };
  if (!isSecure) return connectTcp(options);
  return connectTls({
    ...options,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
  });
}

/**
 * Has the proxy at the other end of a connection connect to a server. Whatever comes on the connection after that is from there.
 * Fails where the proxy refuses, or says something else.
 */
export function openTunnel(
  socket: Socket,
  { authorization }: HttpProxy,
  { host, port }: { host: string; port: number },
  opened: (error?: Error) => void,
): void {
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const identity = authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`;
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${identity}\r\n`, 'latin1');
  let head = '';
  const settle = (error?: Error) => {
    socket.off('data', read);
    opened(error);
  };
  const read = (chunk: Buffer) => {
    head += chunk.toString('latin1');
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) {
      if (head.length > MAX_HEAD_BYTES) settle(new Error('what it says cannot be understood'));
      return;
    }
    const [, status, reason = ''] = /^HTTP\/1\.[01] (\d{3}) ?([^\r\n]*)/.exec(head) ?? [];
    if (status === undefined) settle(new Error('what it says cannot be understood'));
    else if (!status.startsWith('2')) settle(new Error(`it answered HTTP ${status} ${reason}`.trimEnd()));
    // Nobody speaks before us: TLS begins with the client.
    else if (head.length > end + 4) settle(new Error('it said more than it was asked'));
    else settle();
  };
  socket.on('data', read);
}
