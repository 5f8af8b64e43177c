import { expect, it } from 'vitest';
import { answerJson, goodResult, HttpPeer, type PeerExchange } from '../helpers/http-peer.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { RawModern } from './raw-modern.ts';

const discovered = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 3_600_000,
  cacheScope: 'public',
};

/** Like legacy servers that reject requests without a session. */
function serveLegacy({ message, headers, response }: PeerExchange): boolean {
  if (message?.method === 'initialize')
    answerJson(response, { id: message.id, result: goodResult(message) }, { 'mcp-session-id': 'session' });
  else if (headers['mcp-session-id'] === undefined) response.writeHead(400).end();
  else return false;
  return true;
}

function serveModern({ message, response }: PeerExchange): boolean {
  if (message?.method === undefined || message.id === undefined) return false;
  const result = message.method === 'server/discover' ? discovered : goodResult(message);
  answerJson(response, { id: message.id, result: { resultType: 'complete', ...result } });
  return true;
}

it('a server that is replaced by a legacy one is discovered again, whatever its ttl said', async () => {
  let serve = serveModern;
  await using peer = await HttpPeer.start({ box: (exchange) => serve(exchange) });
  await using switchboard = await startSwitchboard(peer.configuration());
  const client = new RawModern(switchboard.url);
  expect(await client.callText('greet')).toBe('hello');
  serve = serveLegacy;
  expect(await client.callText('greet')).toBe('hello');
  expect(await client.callText('greet')).toBe('hello');
});

it('a server that is replaced by a modern one is discovered again', async () => {
  let serve = serveLegacy;
  await using peer = await HttpPeer.start({ box: (exchange) => serve(exchange) });
  await using switchboard = await startSwitchboard(peer.configuration());
  const client = new RawModern(switchboard.url);
  expect(await client.callText('greet')).toBe('hello');
  serve = (exchange) => {
    const { message, headers, response } = exchange;
    if (headers['mcp-session-id'] !== undefined) response.writeHead(404).end();
    else if (message?.method === 'initialize')
      answerJson(response, { id: message.id, error: { code: -32601, message: 'Unknown method' } });
    else return serveModern(exchange);
    return true;
  };
  expect(await client.callText('greet')).toBe('hello');
});
