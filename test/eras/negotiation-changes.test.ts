import { describe, expect, it } from 'vitest';
import { answerJson, HttpPeer, type PeerExchange, type Quirk, sessionGiver } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { RawModern } from './raw-modern.ts';
import { says, statelessServer } from './stateless-server.ts';

type Refuse = (exchange: PeerExchange) => void;

function refuseWith(status: number, error: object | undefined, isEchoed: boolean): Refuse {
  return ({ message, response }) => {
    response.writeHead(status, { 'content-type': error === undefined ? 'text/plain' : 'application/json' });
    const id = isEchoed ? message?.id : null;
    response.end(error === undefined ? 'No' : JSON.stringify({ jsonrpc: '2.0', id, error }));
  };
}

const unsupported = {
  code: -32022,
  message: 'Unsupported',
  data: { supported: ['2026-07-28'], requested: 'x' },
};
const mismatch = { code: -32020, message: 'The header Mcp-Method is missing' };

/** How modern servers reject legacy requests. */
const byModern: Record<string, Refuse> = {
  'unsupported version, with its id': refuseWith(400, unsupported, true),
  'unsupported version, without an id': refuseWith(400, unsupported, false),
  'missing header, with its id': refuseWith(400, mismatch, true),
  'missing header, without an id': refuseWith(400, mismatch, false),
};

/** The same if only the missing session shows the error. */
const byStrangers: Record<string, Refuse> = {
  'bad request': refuseWith(400, undefined, false),
  'not found': refuseWith(404, undefined, false),
};

/** How legacy servers reject modern requests. */
const byLegacy: Record<string, Refuse> = {
  'bad request, as JSON-RPC': refuseWith(400, { code: -32000, message: 'Bad Request: no session' }, false),
  'bad request': refuseWith(400, undefined, false),
  'not found': refuseWith(404, undefined, false),
  'not allowed': refuseWith(405, undefined, false),
};

/** A server that changes its era on command. Counts what it executes. */
class Changing {
  era: 'legacy' | 'modern';
  readonly executed = new Map<unknown, number>();
  private readonly refuse: Refuse;
  private readonly hasSessions: boolean;
  private sessions = sessionGiver();

  constructor(era: 'legacy' | 'modern', refuse: Refuse, hasSessions: boolean) {
    this.era = era;
    this.refuse = refuse;
    this.hasSessions = hasSessions;
  }

  readonly quirk: Quirk = (exchange) => {
    const { headers, message, method } = exchange;
    if (method !== 'POST' || message?.id === undefined) return false;
    const isModern = headers['mcp-protocol-version'] === '2026-07-28';
    if (isModern !== (this.era === 'modern')) {
      this.refuse(exchange);
      return true;
    }
    if (message.method === 'tools/call') {
      const key = (message.params as { arguments: { key?: unknown } }).arguments.key;
      this.executed.set(key, (this.executed.get(key) ?? 0) + 1);
    }
    if (this.era === 'modern') return this.modern(exchange);
    if (message.method === 'initialize') return this.hasSessions && this.sessions.gives(exchange);
    if (!this.hasSessions || headers['mcp-session-id'] !== undefined) return false;
    answerJson(exchange.response, { id: message.id, error: { code: -32000, message: 'no session' } });
    return true;
  };

  private readonly modern = statelessServer(['greet'], () => says('hello'));
}

interface Change {
  before: 'legacy' | 'modern';
  after: 'legacy' | 'modern';
  hasSessions: boolean;
  how: string;
  refuse: Refuse;
}

function changes(
  refusals: Record<string, Refuse>,
  kinds: Pick<Change, 'before' | 'after' | 'hasSessions'>[],
) {
  return Object.entries(refusals).flatMap(([how, refuse]) => kinds.map((kind) => ({ ...kind, how, refuse })));
}

const toModern = { before: 'legacy', after: 'modern' } as const;
const toLegacy = { before: 'modern', after: 'legacy' } as const;

const cases: Change[] = [
  ...changes(byModern, [
    { ...toModern, hasSessions: true },
    { ...toModern, hasSessions: false },
  ]),
  ...changes(byStrangers, [{ ...toModern, hasSessions: true }]),
  ...changes(byLegacy, [
    { ...toLegacy, hasSessions: true },
    { ...toLegacy, hasSessions: false },
  ]),
];

describe('a server over HTTP that is replaced by one of the other era', () => {
  let peer: HttpPeer;
  let switchboard: RunningSwitchboard;
  const servers = cases.map(({ before, refuse, hasSessions }) => new Changing(before, refuse, hasSessions));

  setUp(async (use) => {
    peer = use(
      await HttpPeer.start(Object.fromEntries(servers.map(({ quirk }, index) => [`server${index}`, quirk]))),
    );
    switchboard = use(
      await startSwitchboard(peer.configuration(), {
        naming: 'always',
        backoffFirstMs: 10,
        backoffMaxMs: 20,
      }),
    );
  });

  it.each(cases.map((one, index) => ({ ...one, index })))(
    'keeps working: $before, then $after; sessions: $hasSessions; rejected by $how',
    async ({ index, after }) => {
      const server = servers[index]!;
      const name = `server${index}__greet`;
      const session = await RawSession.open(switchboard.url);
      const stateless = new RawModern(switchboard.url);
      expect(await session.callText(name, { key: 0 })).toBe('hello');
      server.era = after;
      expect((await session.call(name, { key: 1 })).error).toBeUndefined();
      expect((await stateless.call(name, { key: 2 })).error).toBeUndefined();
      expect([...server.executed]).toEqual([
        [0, 1],
        [1, 1],
        [2, 1],
      ]);
    },
  );
});
