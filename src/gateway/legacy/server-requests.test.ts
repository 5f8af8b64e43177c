import { expect, it } from 'vitest';
import { readMessage } from '../../protocol/message-reader.ts';
import type { Server } from '../../upstreams/server.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { declineAmbiguous } from './server-requests.ts';

function declined(method: string, type: string): string {
  const message = readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method })));
  const sent: string[] = [];
  const upstream = { send: (bytes: Uint8Array) => sent.push(String(bytes)) } as unknown as Upstream;
  declineAmbiguous(message, upstream, { name: 'box', config: { transport: { type } } } as unknown as Server);
  return sent[0]!;
}

it.each([
  ['stdio', true],
  ['hosted', false],
])(
  'declines a request of a %s server without a clear client, with advice that it can follow',
  (type, isAdvised) => {
    const answer = declined('elicitation/create', type);
    expect(answer).toContain('it is not clear which client it is for.');
    expect(answer.includes('isolation')).toBe(isAdvised);
  },
);

it.each([
  ['stdio', true],
  ['hosted', false],
])('tells a %s server that requests roots that having none is normal', (type, isAdvised) => {
  const answer = declined('roots/list', type);
  expect(answer).toContain('all clients share this server (this is normal');
  expect(answer.includes('isolation')).toBe(isAdvised);
});
