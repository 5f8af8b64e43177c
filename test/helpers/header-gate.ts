import { once } from 'node:events';
import { createServer, type IncomingMessage, request as openRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HeaderGate extends AsyncDisposable {
  url: string;
  /** Every request that came, with what the header had in it. */
  passed: { method: string; header: string | undefined }[];
}

/** An HTTP proxy that rejects requests without this header. */
export async function startHeaderGate(target: string, name: string, value: string): Promise<HeaderGate> {
  const { origin, pathname } = new URL(target);
  const passed: HeaderGate['passed'] = [];
  const gate = createServer((incoming, response) => {
    const header = headerOf(incoming, name);
    passed.push({ method: incoming.method!, header });
    if (header !== value) {
      response.writeHead(401).end(`${name} is missing or wrong`);
      return;
    }
    const outgoing = openRequest(
      new URL(incoming.url!, origin),
      { method: incoming.method, headers: incoming.headers, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
        answer.on('error', () => response.destroy());
      },
    );
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  const { port } = gate.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${pathname}`,
    passed,
    async [Symbol.asyncDispose]() {
      const closed = once(gate, 'close');
      gate.close();
      gate.closeAllConnections();
      await closed;
    },
  };
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const header = headers[name.toLowerCase()];
  return Array.isArray(header) ? header.join(', ') : header;
}
