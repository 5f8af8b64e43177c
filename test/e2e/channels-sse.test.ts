import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { goodResult, HttpPeer, openEvents, type PeerExchange, writeEvent } from '../helpers/http-peer.ts';
import { RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const limit = 1024 * 1024;

/** A server of 2024-11-05: GET opens the stream and names the POST address; responses come on the stream. */
class SsePeer {
  readonly streams: ServerResponse[] = [];
  private readonly address: string;

  constructor(address: string) {
    this.address = address;
  }

  /** `act` returns true to suppress the response. */
  quirk(act: (stream: ServerResponse, message: RpcMessage) => boolean = () => false) {
    return ({ method, path, message, response }: PeerExchange): boolean => {
      if (method === 'GET') {
        openEvents(response);
        response.write(`event: endpoint\ndata: ${this.address}\n\n`);
        this.streams.push(response);
      } else if (!path.endsWith(this.address)) {
        response.writeHead(405).end();
      } else {
        response.writeHead(202).end('Accepted');
        const stream = this.streams.at(-1)!;
        if (message?.id !== undefined && !act(stream, message)) {
          writeEvent(stream, { event: 'message' }, { id: message.id, result: goodResult(message) });
        }
      }
      return true;
    };
  }
}

const isCall = ({ method }: RpcMessage) => method === 'tools/call';
let droppedCalls = 0;

const quirks = {
  plain: new SsePeer('/plain/messages?token=1').quirk(),
  disguised: new SsePeer('/disguised/messages').quirk(),
  /** Names an address on a foreign origin. */
  luring: new SsePeer('http://localhost:1/steal').quirk(),
  dropping: new SsePeer('/dropping/messages').quirk((stream, message) => {
    if (!isCall(message) || droppedCalls++ > 0) return false;
    stream.end();
    return true;
  }),
  bulky: new SsePeer('/bulky/messages').quirk((stream, message) => {
    const { bytes } = (message.params?.arguments ?? {}) as { bytes?: number };
    if (bytes === undefined) return false;
    const content = [{ type: 'text', text: 'x'.repeat(bytes) }];
    writeEvent(stream, {}, { result: { content }, id: message.id });
    return true;
  }),
  /** Opens the stream but rejects the message. */
  refusing: (exchange: PeerExchange) => {
    if (exchange.method !== 'POST') return new SsePeer('/refusing/messages').quirk()(exchange);
    exchange.response.writeHead(400).end('Could not find session');
    return true;
  },
  absent: ({ response }: PeerExchange) => {
    response.writeHead(404).end('nothing here');
    return true;
  },
};

let peer: HttpPeer;
let switchboard: RunningSwitchboard;
let session: RawSession;

setUp(async (use) => {
  peer = use(await HttpPeer.start(quirks));
  const servers = Object.entries(peer.configuration()).map(([name, { url }]) => [
    name,
    name === 'disguised' || name === 'absent' ? { url } : { type: 'sse', url, headers: { 'x-place': name } },
  ]);
  switchboard = use(
    await startSwitchboard(Object.fromEntries(servers), {
      maxMessageBytes: limit,
      naming: 'always',
    }),
  );
  session = await RawSession.open(switchboard.url);
  await session.toolNames();
});

async function startFailure(name: string): Promise<string> {
  const { error } = await switchboard.event((event) => event.name === name && event.state === 'backing_off');
  return String(error);
}

describe('a server over HTTP+SSE', () => {
  it('is called at the address that it names, with the configured headers [P6]', async () => {
    expect(await session.callText('plain__greet')).toBe('hello');
    const seen = peer.exchanges.items.filter(({ path }) => path.startsWith('/plain'));
    expect(new Set(seen.map(({ method, path }) => `${method} ${path}`))).toEqual(
      new Set(['GET /plain', 'POST /plain/messages?token=1']),
    );
    expect(seen.map(({ headers }) => headers['x-place'])).toEqual(seen.map(() => 'plain'));
  });

  it('is detected where streamable HTTP is configured', async () => {
    expect(await session.callText('disguised__greet')).toBe('hello');
    // Both eras of streamable HTTP are tried first.
    expect(peer.seenBy('disguised').map(({ method }) => method)).toEqual(['POST', 'POST', 'GET']);
  });

  it('that drops its stream fails the call, and reconnects on the next', async () => {
    const { error } = await session.call('dropping__greet');
    expect(error?.message).toMatch(/Server "dropping".*closed its event stream/);
    expect(await session.callText('dropping__greet')).toBe('hello');
  });

  it('may send large responses up to the limit', async () => {
    expect(await session.callText('bulky__greet', { bytes: 500_000 })).toHaveLength(500_000);
    const { error } = await session.call('bulky__greet', { bytes: limit });
    expect(error?.message).toMatch(
      /Server "bulky".*a message over 1048576 bytes \(setting maxMessageBytes\)/,
    );
    expect(await session.callText('bulky__greet', { bytes: 3 })).toBe('xxx');
  });

  it.each([
    ['luring', /sent an endpoint on another server: http:\/\/localhost:1\/steal/],
    ['refusing', /HTTP 400\. Response: Could not find session/],
    ['absent', /HTTP 404\. Response: nothing here/],
  ])('(%s) that is unusable fails with the reason', async (name, message) => {
    expect(await startFailure(name)).toContain(`Server "${name}"`);
    expect(await startFailure(name)).toMatch(message);
  });
});
