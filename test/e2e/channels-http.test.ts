import { describe, expect, it } from 'vitest';
import {
  answerJson,
  goodResult,
  HttpPeer,
  openEvents,
  type PeerExchange,
  type Quirk,
  writeEvent,
} from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const limit = 32 * 1024 * 1024;
const isCall = ({ message }: PeerExchange) => message?.method === 'tools/call';
const isInitialize = ({ message }: PeerExchange) => message?.method === 'initialize';

const onCall =
  (act: (exchange: PeerExchange, id: unknown) => void): Quirk =>
  (exchange) => {
    if (isCall(exchange)) act(exchange, exchange.message?.id);
    return isCall(exchange);
  };

const bulk = ({ message }: PeerExchange) => {
  const { arguments: given } = message?.params ?? {};
  const { bytes } = given as { bytes: number };
  return { content: [{ type: 'text', text: 'x'.repeat(bytes) }] };
};

let sessions = 0;
let forgotten = '';
let extraTools: object[] = [];
const dropped = new Set<unknown>();

const quirks: Record<string, Quirk> = {
  plain: () => false,
  eventful: ({ method, message, response }) => {
    if (method !== 'POST' || message?.id === undefined) return false;
    openEvents(response);
    const { progressToken } = (message.params?._meta ?? {}) as { progressToken?: unknown };
    if (progressToken !== undefined) {
      writeEvent(response, {}, { method: 'notifications/progress', params: { progressToken, progress: 1 } });
    }
    writeEvent(response, { event: 'message' }, { id: message.id, result: goodResult(message) });
    response.end();
    return true;
  },
  forgetful: (exchange) => {
    const { message, headers, response } = exchange;
    if (isInitialize(exchange)) {
      sessions++;
      answerJson(
        response,
        { id: message?.id, result: goodResult(message!) },
        { 'mcp-session-id': `s${sessions}` },
      );
    } else if (headers['mcp-session-id'] === forgotten) {
      response
        .writeHead(404)
        .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}');
    } else {
      return false;
    }
    return true;
  },
  accepting: onCall(({ response }) => response.writeHead(202).end()),
  closing: onCall(({ response }) => {
    openEvents(response);
    response.end();
  }),
  /** Closes the stream at once, and sends the response when the client reconnects. */
  polling: (exchange) => {
    const { method, headers, response } = exchange;
    if (isCall(exchange)) {
      openEvents(response);
      writeEvent(response, { id: `call-${exchange.message?.id}`, retry: '20' });
      response.end();
      return true;
    }
    const [, id] = /^call-(\d+)$/.exec(String(headers['last-event-id'])) ?? [];
    if (method !== 'GET' || id === undefined) return false;
    openEvents(response);
    writeEvent(
      response,
      { id: 'last' },
      { id: Number(id), result: { content: [{ type: 'text', text: 'later' }] } },
    );
    response.end();
    return true;
  },
  /** Sends notifications outside of requests. */
  announcing: ({ method, message, response }) => {
    if (method === 'GET') openEvents(response);
    else if (message?.method === 'tools/list') {
      const { tools } = goodResult(message) as { tools: object[] };
      answerJson(response, { id: message.id, result: { tools: [...tools, ...extraTools] } });
    } else {
      return false;
    }
    return true;
  },
  redirecting: ({ response }) => {
    response.writeHead(307, { location: '/plain' }).end();
    return true;
  },
  locked: ({ response }) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('who are you?');
    return true;
  },
  website: ({ response }) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>');
    return true;
  },
  confused: onCall(({ response }, id) => answerJson(response, { id: Number(id) + 1_000, result: {} })),
  failing: onCall(({ response }) => response.writeHead(500).end('out of order')),
  dropping: onCall(({ message, response }, id) => {
    if (dropped.size === 0) {
      dropped.add(id);
      response.destroy();
    } else {
      answerJson(response, { id, result: goodResult(message!) });
    }
  }),
  /** Batched responses are valid in 2025-03-26. */
  batching: onCall(({ message, response }, id) =>
    answerJson(response, [
      { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'first' } },
      { jsonrpc: '2.0', id, result: goodResult(message!) },
    ]),
  ),
  bulky: onCall((exchange, id) => answerJson(exchange.response, { id, result: bulk(exchange) })),
  flowing: onCall((exchange, id) => {
    openEvents(exchange.response);
    writeEvent(exchange.response, {}, { result: bulk(exchange), id });
    exchange.response.end();
  }),
};

let peer: HttpPeer;
let switchboard: RunningSwitchboard;
let session: RawSession;

setUp(async (use) => {
  peer = use(await HttpPeer.start(quirks));
  const { plain, ...rest } = peer.configuration();
  switchboard = use(
    await startSwitchboard(
      { plain: { ...plain, headers: { authorization: 'Bearer secret' } }, ...rest },
      { maxMessageBytes: limit, naming: 'always' },
    ),
  );
  session = await RawSession.open(switchboard.url);
  await session.toolNames();
});

async function failure(server: string): Promise<string> {
  const { error } = await session.call(`${server}__greet`, {});
  return error?.message ?? 'it was answered';
}

async function startFailure(name: string): Promise<string> {
  const { error } = await switchboard.event((event) => event.name === name && event.state === 'backing_off');
  return String(error);
}

describe('a server over streamable HTTP', () => {
  it.each(['plain', 'eventful', 'batching'])('(%s) is called and responds', async (name) => {
    expect(await session.callText(`${name}__greet`)).toBe('hello');
  });

  it('receives the configured headers, and the protocol version after the handshake', async () => {
    const seen = peer.seenBy('plain');
    expect(seen.map(({ headers }) => headers.authorization)).toEqual(seen.map(() => 'Bearer secret'));
    const [question, greeting, ...rest] = seen;
    expect(question?.headers['mcp-protocol-version']).toBe('2026-07-28');
    expect(greeting?.headers['mcp-protocol-version']).toBeUndefined();
    expect(rest.map(({ headers }) => headers['mcp-protocol-version'])).toEqual(rest.map(() => '2025-11-25'));
  });

  it('reports progress on the stream of the call', async () => {
    const stream = await session.openCall('eventful__greet', {}, 'token');
    expect(await stream.message(({ method }) => method === 'notifications/progress')).toMatchObject({
      params: { progressToken: 'token', progress: 1 },
    });
    await stream.ended;
  });

  it('may drop the session: a new one opens, and the call that did not run is sent again', async () => {
    expect(await session.callText('forgetful__greet')).toBe('hello');
    forgotten = 's1';
    expect(await session.callText('forgetful__greet')).toBe('hello');
    const { headers } = peer.seenBy('forgetful').findLast(isCall)!;
    expect(headers['mcp-session-id']).toBe('s2');
  });

  it.each([
    ['accepting', /ended the HTTP response without a JSON-RPC response/],
    ['closing', /ended the HTTP response without a JSON-RPC response/],
    ['confused', /ended the HTTP response without a JSON-RPC response/],
    ['failing', /responded with HTTP 500.*Response: out of order/],
    ['dropping', /cannot be reached|closed/],
  ])('(%s) that sends no response fails the call', async (name, message) => {
    const said = await failure(name);
    expect(said).toContain(`Server "${name}"`);
    expect(said).toMatch(message);
  });

  it('that dropped a connection gets the next call', async () => {
    expect(await session.callText('dropping__greet')).toBe('hello');
  });

  it('may close a stream and respond after the client reconnects', async () => {
    expect(await session.callText('polling__greet')).toBe('later');
    const resumption = await peer.sees('polling', ({ headers }) => headers['last-event-id'] !== undefined);
    expect(resumption.method).toBe('GET');
  });

  it('announces changes on the standing stream', async () => {
    const stream = await session.listen();
    const { response } = await peer.sees('announcing', ({ method }) => method === 'GET');
    extraTools = [{ name: 'wave', inputSchema: { type: 'object' } }];
    writeEvent(response, { id: 'e1' }, { method: 'notifications/tools/list_changed' });
    await peer.exchanges.next(
      ({ path, message }) => path === '/announcing' && message?.method === 'tools/list',
    );
    await stream.message(({ method }) => method === 'notifications/tools/list_changed');
    await expect.poll(() => session.toolNames()).toContain('announcing__wave');
    // The client resumes after the last event.
    response.end();
    await peer.sees('announcing', ({ headers }) => headers['last-event-id'] === 'e1');
    await stream.cut();
  });

  it('may ping on the standing stream', async () => {
    const { response } = peer.seenBy('announcing').findLast(({ method }) => method === 'GET')!;
    writeEvent(response, {}, { id: 'are-you-there', method: 'ping' });
    const answer = await peer.sees('announcing', ({ message }) => message?.id === 'are-you-there');
    expect(answer.message).toEqual({ jsonrpc: '2.0', id: 'are-you-there', result: {} });
  });

  it.each([
    ['redirecting', /HTTP 307.*redirects to .*\/plain/],
    ['locked', /HTTP 401\. Check the configured headers\. Response: who are you\?/],
    ['website', /not valid JSON/],
  ])('(%s) that does not speak MCP fails with the reason', async (name, message) => {
    expect(await startFailure(name)).toContain(`Server "${name}"`);
    expect(await startFailure(name)).toMatch(message);
  });

  it.each(['bulky', 'flowing'])('(%s) may send large responses up to the limit', async (name) => {
    expect(await session.callText(`${name}__greet`, { bytes: 20_000_000 })).toHaveLength(20_000_000);
    const { error } = await session.call(`${name}__greet`, { bytes: limit });
    expect(error?.message).toBe(
      `Server "${name}": The server sent a message over ${limit} bytes (setting maxMessageBytes).`,
    );
    expect(await session.callText(`${name}__greet`, { bytes: 3 })).toBe('xxx');
  });

  it('is notified when its session ends', async () => {
    await switchboard.configure({});
    const { headers } = await peer.sees('forgetful', ({ method }) => method === 'DELETE');
    expect(headers['mcp-session-id']).toBe('s2');
  });
});
