import { describe, expect, it } from 'vitest';
import { HttpPeer, type PeerExchange, sessionGiver } from '../helpers/http-peer.ts';
import { Scene } from './scene.ts';

/** A JSON-RPC response with HTTP 400. */
function refuse({ message, response }: PeerExchange, error: object): void {
  const body = JSON.stringify({ jsonrpc: '2.0', id: message?.id, error });
  response.writeHead(400, { 'content-type': 'application/json' }).end(body);
}

/** A server that rejects all calls, and handles ping as given. */
async function startRefusing(
  call: (exchange: PeerExchange) => void,
  ping?: (exchange: PeerExchange) => void,
) {
  const sessions = sessionGiver();
  const peer = await HttpPeer.start({
    strict: (exchange) => {
      const { method } = exchange.message ?? {};
      if (method === 'tools/call') call(exchange);
      else if (method === 'ping' && ping !== undefined) ping(exchange);
      else return sessions.gives(exchange);
      return true;
    },
  });
  const scene = await Scene.start(peer.configuration());
  return {
    scene,
    /** The session is the same, and the call was sent once. */
    async goesOn(): Promise<void> {
      const calls = peer.seenBy('strict').filter(({ message }) => message?.method === 'tools/call');
      expect([calls.length, sessions.count]).toEqual([1, 1]);
      expect(await scene.view('strict')).toMatchObject({ state: 'ready', restarts: 0 });
    },
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]();
      await peer[Symbol.asyncDispose]();
    },
  };
}

const unknownMethod = (exchange: PeerExchange) => refuse(exchange, { code: -32601, message: 'What?' });
const pings = {
  knows: undefined,
  'does not know': unknownMethod,
  'says nothing to': ({ response }: PeerExchange) => void response.writeHead(400).end('What?'),
};

describe.concurrent('a server that responds with HTTP 400', () => {
  it('fails only that call: a ping shows that the session is still valid', async () => {
    const sessions = sessionGiver();
    await using peer = await HttpPeer.start({
      strict: (exchange) => {
        const { message, response } = exchange;
        const { arguments: given } = (message?.params ?? {}) as { arguments?: { text?: string } };
        if (given?.text !== 'wrong') return sessions.gives(exchange);
        response.writeHead(400).end('no such text');
        return true;
      },
    });
    await using scene = await Scene.start(peer.configuration());
    const error = await scene.beside(() => scene.errorOf('strict__greet', { text: 'wrong' }));
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /^Server "strict": .* responded with HTTP 400\. Response: no such text$/,
      ),
      data: { code: 'server_unavailable', server: 'strict', status: 400 },
    });
    const methods = peer.seenBy('strict').map(({ message }) => message?.method);
    expect(methods.filter((method) => method === 'ping' || method === 'tools/call')).toEqual([
      'tools/call',
      'ping',
    ]);
    expect(await scene.session.callText('strict__greet', { text: 'right' })).toBe('hello');
    expect(sessions.count).toBe(1);
    expect(await scene.view('strict')).toMatchObject({ state: 'ready', restarts: 0 });
  });

  it.each(Object.entries(pings))(
    'and %s ping has its own error passed on if that answers the call',
    async (_, ping) => {
      const refusal = { code: -32602, message: 'The city is missing.', data: { argument: 'city' } };
      await using refusing = await startRefusing((exchange) => refuse(exchange, refusal), ping);
      expect(await refusing.scene.errorOf('strict__greet')).toEqual(refusal);
      await refusing.goesOn();
    },
  );

  it('keeps its session if it rejects ping but responds to it', async () => {
    const refuseCall = ({ response }: PeerExchange) => void response.writeHead(400).end('no city');
    await using refusing = await startRefusing(refuseCall, unknownMethod);
    expect(await refusing.scene.errorOf('strict__greet')).toMatchObject({
      message: expect.stringMatching(/^Server "strict": .* responded with HTTP 400\. Response: no city$/),
      data: { code: 'server_unavailable', server: 'strict', status: 400 },
    });
    await refusing.goesOn();
  });
});
