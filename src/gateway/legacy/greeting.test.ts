import { expect, it } from 'vitest';
import { readMessage } from '../../protocol/message-reader.ts';
import { readInitialize } from './greeting.ts';

it('truncates a long client description', () => {
  const clientInfo = { name: 'n'.repeat(100_000), version: '1', icons: [{ src: 'x'.repeat(50_000) }] };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const message = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
  const facts = readInitialize(readMessage(Buffer.from(JSON.stringify(message))));
  expect(facts.name).toHaveLength(200);
  expect(facts.clientInfo).toEqual({ name: 'n'.repeat(200), version: '1' });
});
