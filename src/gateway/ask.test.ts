import { expect, it } from 'vitest';
import { readMessage } from '../protocol/envelope.ts';
import type { Server } from '../upstreams/server.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { declineUnclear } from './ask.ts';

it.each([
  ['stdio', true],
  ['hosted', false],
])('a question of a %s server that is for nobody comes back with advice it can follow', (type, isAdvised) => {
  const message = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"roots/list"}'));
  const sent: string[] = [];
  const upstream = { send: (bytes: Uint8Array) => sent.push(String(bytes)) } as unknown as Upstream;
  declineUnclear(message, upstream, { name: 'box', config: { transport: { type } } } as unknown as Server);
  expect(sent[0]).toContain('it cannot be told for which client.');
  expect(sent[0]!.includes('isolation')).toBe(isAdvised);
});
