import { once } from 'node:events';
import { createServer, type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';

export interface Target {
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** Forwards to the port of a sandbox, which is protected by a token at E2B and by loopback here. */
export interface LoopbackPort {
  url: string;
  close(): void;
}

/** Rejects if the port is in use. */
export async function openLoopbackPort(target: Target, hostPort = 0): Promise<LoopbackPort> {
  const server = createServer((incoming, outgoing) => forward(incoming, outgoing, target));
  server.listen(hostPort, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function forward(incoming: IncomingMessage, outgoing: ServerResponse, target: Target): void {
  const url = new URL(target.url);
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const { host: _ours, connection: _hop, ...headers } = incoming.headers;
  const onward = request(url, {
    path: incoming.url,
    method: incoming.method,
    headers: { ...headers, ...target.headers },
  });
  onward.on('response', (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    outgoing.flushHeaders();
    pipeline(response, outgoing, () => {});
  });
  onward.on('error', (error) => {
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(502).end(`Cannot reach E2B: ${error.message}\n`);
  });
  outgoing.on('close', () => onward.destroy());
  pipeline(incoming, onward, () => {});
}
