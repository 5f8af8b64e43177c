import { describe, expect, it } from 'vitest';
import { HttpPeer, type Quirk, sessionGiver } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startEverything, startSwitchboard } from '../helpers/switchboard.ts';
import { says, statelessServer } from './stateless-server.ts';

const legacyStatuses = [400, 404, 405, 406, 415, 422];
const failures = [401, 403, 429, 500, 502, 503];

/** Rejects discovery, and otherwise works as a legacy server. */
function refusing(status: number, body = ''): Quirk {
  return ({ message, response }) => {
    if (message?.method !== 'server/discover') return false;
    response.writeHead(status).end(body);
    return true;
  };
}

/** Rejects with a JSON-RPC error under that id. */
function refusingWith(code: number, idOf: (id: unknown) => unknown): Quirk {
  return ({ message, response }) => {
    if (message?.method !== 'server/discover') return false;
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: idOf(message.id), error: { code, message: 'No' } }));
    return true;
  };
}

/** Speaks the modern era to requests that name it, and the legacy era otherwise. */
function dual(greets: Quirk): Quirk {
  const modern = statelessServer(['greet'], () => says('modern hello'));
  return (exchange) =>
    (exchange.headers['mcp-protocol-version'] === '2026-07-28' ? modern : greets)(exchange);
}

describe('a server over HTTP', () => {
  let peer: HttpPeer;
  let switchboard: RunningSwitchboard;
  let session: RawSession;
  const methodsOf = (name: string) =>
    peer.seenBy(name).map(({ message, method }) => message?.method ?? method);

  setUp(async (use) => {
    peer = use(
      await HttpPeer.start({
        ...Object.fromEntries(
          [...legacyStatuses, ...failures].map((status) => [`status${status}`, refusing(status, 'Go away')]),
        ),
        'ours-null': refusingWith(-32000, () => null),
        'ours-echoed': refusingWith(-32601, (id) => id),
        'unsupported-null': refusingWith(-32022, () => null),
        modern: statelessServer(['greet'], () => says('modern hello')),
        future: statelessServer(['greet'], () => says('hello'), { supportedVersions: ['2027-01-01'] }),
        dual: dual(sessionGiver().gives),
        sessionless: dual(() => false),
      }),
    );
    switchboard = use(
      await startSwitchboard(peer.configuration(), { naming: 'always', backoffFirstMs: 60_000 }),
    );
    session = await RawSession.open(switchboard.url);
    await session.toolNames();
  });

  it.each([
    ...legacyStatuses.map((status) => `status${status}`),
    'ours-null',
    'ours-echoed',
    'unsupported-null',
  ])('that rejects discovery (%s) gets initialize', async (name) => {
    expect(await session.callText(`${name}__greet`)).toBe('hello');
    expect(methodsOf(name).slice(0, 2)).toEqual(['server/discover', 'initialize']);
  });

  it.each(failures)(
    'that cannot be reached (HTTP %s) gets no initialize, and the error says why',
    async (status) => {
      const name = `status${status}`;
      const { error } = await session.call(`${name}__greet`);
      expect(error?.message).toContain(`HTTP ${status}`);
      expect(methodsOf(name)).toEqual(['server/discover']);
    },
  );

  it.each(['modern', 'sessionless'])(
    'that is %s gets initialize once, and then modern calls',
    async (name) => {
      for (const _ of [1, 2]) expect(await session.callText(`${name}__greet`)).toBe('modern hello');
      expect(methodsOf(name).filter((method) => method === 'initialize')).toHaveLength(1);
    },
  );

  it('that speaks both eras gets legacy calls from a legacy client', async () => {
    for (const _ of [1, 2]) expect(await session.callText('dual__greet')).toBe('hello');
    expect(methodsOf('dual').filter((method) => method === 'initialize')).toHaveLength(1);
  });

  it('that speaks only later versions gets no initialize, and the error names them', async () => {
    const { error } = await session.call('future__greet');
    expect(error?.message).toContain('2027-01-01');
    expect(methodsOf('future')).not.toContain('initialize');
  });

  it('that speaks only HTTP+SSE is reached, with its type and without', async () => {
    await using server = await startEverything('sse');
    await using own = await startSwitchboard(
      { typed: { type: 'sse', url: server.url }, untyped: { url: server.url } },
      { naming: 'always' },
    );
    const guest = await RawSession.open(own.url);
    for (const name of ['typed', 'untyped']) {
      expect(await guest.callText(`${name}__echo`, { message: name })).toContain(name);
    }
  });
});
