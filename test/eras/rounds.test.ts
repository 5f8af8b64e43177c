import { describe, expect, it } from 'vitest';
import { HttpPeer } from '../helpers/http-peer.ts';
import { RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { accept, textIn } from './asked.ts';
import { AskedCall } from './asked-session.ts';
import { type AnswerCall, asksName, says, statelessServer } from './stateless-server.ts';

/** With characters that JSON must escape, and others that it need not. */
const oddState = 'state "quoted" \\ \u0000\u001f\u2028 ümläut 🂡 </script> \ud800';

const tools: Record<string, AnswerCall> = {
  once: ({ params }) =>
    params?.requestState === oddState ? says(JSON.stringify(params.inputResponses)) : asksName(oddState),

  thrice: ({ params }) => {
    const round = Number(params?.requestState ?? 0);
    return round === 3 ? says('after three') : asksName(String(round + 1));
  },

  /** Asks for nothing but a later retry. */
  later: ({ params }) =>
    params?.requestState === 'soon'
      ? says(JSON.stringify(Object.keys(params).toSorted()))
      : { resultType: 'input_required', requestState: 'soon' },

  without_state: ({ params }) =>
    params?.inputResponses === undefined ? asksName(undefined) : says(String('requestState' in params)),

  several: ({ params }) =>
    params?.inputResponses === undefined
      ? asksName('two', {
          model: {
            method: 'sampling/createMessage',
            params: { messages: [], maxTokens: 1 },
          },
        })
      : says(JSON.stringify(params.inputResponses)),

  roots: ({ params }) =>
    params?.inputResponses === undefined
      ? { resultType: 'input_required', inputRequests: { where: { method: 'roots/list' } } }
      : says(JSON.stringify(params.inputResponses)),

  forever: () => asksName('more'),

  later_forever: () => ({ resultType: 'input_required', requestState: 'later' }),

  unknown: () => ({
    resultType: 'input_required',
    inputRequests: { strange: { method: 'mind/read', params: {} } },
  }),

  odd_key: ({ params }) => {
    const given = params?.inputResponses as object | undefined;
    if (given !== undefined) return says(JSON.stringify(Object.entries(given)));
    const { inputRequests } = asksName(undefined);
    return JSON.parse(
      `{"resultType":"input_required","inputRequests":{"__proto__":${JSON.stringify(inputRequests.name)}}}`,
    );
  },
};

describe('a call of a legacy client with input requests from a modern server', () => {
  let peer: HttpPeer;
  let switchboard: RunningSwitchboard;
  let session: RawSession;
  const sentTo = (name: string): RpcMessage[] =>
    peer.exchanges.items.flatMap(({ message }) =>
      message?.method === 'tools/call' && message.params?.name === name ? [message] : [],
    );

  setUp(async (use) => {
    peer = use(
      await HttpPeer.start({
        modern: statelessServer(Object.keys(tools), (request, exchange) =>
          tools[String(request.params?.name)]!(request, exchange),
        ),
      }),
    );
    switchboard = use(await startSwitchboard(peer.configuration()));
    session = await RawSession.open(switchboard.url, '2025-11-25', {
      elicitation: {},
      sampling: {},
      roots: {},
    });
  });

  it("asks the client, and returns the server's state unchanged", async () => {
    const call = await AskedCall.begin(session, 'once', { kept: 1 });
    const question = await call.question();
    expect(question).toMatchObject({
      method: 'elicitation/create',
      params: { message: 'What is your name?' },
    });
    await call.answer(question, accept('Ada'));
    expect(JSON.parse(textIn(await call.outcome()))).toEqual({ name: accept('Ada') });
    const [first, second] = sentTo('once');
    expect(second?.id).not.toBe(first?.id);
    expect(second?.params).toMatchObject({ name: 'once', arguments: { kept: 1 }, requestState: oddState });
    expect(first?.params).not.toHaveProperty('requestState');
  });

  it('takes as many rounds as the server needs', async () => {
    const call = await AskedCall.begin(session, 'thrice');
    for (const round of [1, 2, 3]) await call.answer(await call.question(round), accept(String(round)));
    expect(textIn(await call.outcome())).toBe('after three');
    expect(sentTo('thrice').map(({ params }) => params?.requestState)).toEqual([undefined, '1', '2', '3']);
  });

  it('is sent again if the server asks for nothing', async () => {
    expect(JSON.parse(await session.callText('later'))).toContain('requestState');
  });

  it('sends no state if the server gave none', async () => {
    const call = await AskedCall.begin(session, 'without_state');
    await call.answer(await call.question(), accept('Ada'));
    expect(textIn(await call.outcome())).toBe('false');
  });

  it('is sent again only when all requests are answered', async () => {
    const call = await AskedCall.begin(session, 'several');
    const questions = [await call.question(1), await call.question(2)];
    const model = { role: 'assistant', model: 'm', content: { type: 'text', text: 'me' } };
    const answers = questions.map(({ method }) => (method?.startsWith('sampling') ? model : accept('Ada')));
    await call.answer(questions[1]!, answers[1]!);
    expect(sentTo('several')).toHaveLength(1);
    await call.answer(questions[0]!, answers[0]!);
    expect(JSON.parse(textIn(await call.outcome()))).toEqual({ name: accept('Ada'), model });
  });

  it('passes on requests without parameters', async () => {
    const call = await AskedCall.begin(session, 'roots');
    await call.answer(await call.question(), { roots: [{ uri: 'file:///a', name: 'a' }] });
    expect(textIn(await call.outcome())).toContain('file:///a');
  });

  it('returns the response under the key of its request, whatever that is', async () => {
    const call = await AskedCall.begin(session, 'odd_key');
    await call.answer(await call.question(), accept('Ada'));
    expect(JSON.parse(textIn(await call.outcome()))).toEqual([['__proto__', accept('Ada')]]);
  });

  it('ends if the server asks endlessly', async () => {
    const call = await AskedCall.begin(session, 'forever');
    const asking = (async () => {
      for (let round = 1; ; round++) await call.answer(await call.question(round), accept('again'));
    })();
    const { error } = await Promise.race([call.outcome(), asking]);
    expect(error?.message).toMatch(/"modern".*required input more than \d+ times/);
    expect(sentTo('forever').length).toBeLessThan(100);
  });

  it('ends if the server asks for retries endlessly', async () => {
    const { error } = await session.call('later_forever');
    expect(error?.message).toMatch(/"modern".*required input more than \d+ times/);
    expect(sentTo('later_forever').length).toBeLessThan(100);
  });

  it('fails if the server sends an unknown kind of request', async () => {
    const { error } = await session.call('unknown');
    expect(error?.message).toContain('mind/read');
    expect(error?.message).toContain('"modern"');
  });

  it('hides members of the modern era from the client', async () => {
    const call = await AskedCall.begin(session, 'once');
    await call.answer(await call.question(), accept('Ada'));
    expect(Object.keys((await call.outcome()).result ?? {})).toEqual(['content']);
  });
});
