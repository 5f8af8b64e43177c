import { describe, expect, it } from 'vitest';
import { HttpPeer } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { AskedCall } from './asked-session.ts';
import { asksName, says, statelessServer } from './stateless-server.ts';

const elicitation = {};

describe('a round of input requests that fails', () => {
  let peer: HttpPeer;
  let switchboard: RunningSwitchboard;
  const open = (capabilities: object = { elicitation }) =>
    RawSession.open(switchboard.url, '2025-11-25', capabilities);
  const timesCalled = (name: string) =>
    peer.exchanges.items.filter(
      ({ message }) => message?.method === 'tools/call' && message.params?.name === name,
    ).length;
  /** Earlier messages have arrived when this call returns. */
  const another = async () => expect(await (await open()).callText('plain')).toBe('plain');

  setUp(async (use) => {
    const names = ['refused', 'unable', 'ignored', 'cancelled', 'ended', 'both', 'url', 'plain'];
    peer = use(
      await HttpPeer.start({
        modern: statelessServer(names, ({ params }) => {
          if (params?.name === 'plain') return says('plain');
          if (params?.name !== 'both' && params?.name !== 'url') return asksName('s');
          const url = { mode: 'url', url: 'https://example.com/', message: 'Go there' };
          const there = { method: 'elicitation/create', params: url };
          return params.name === 'both'
            ? asksName('s', { again: asksName('s').inputRequests.name })
            : { resultType: 'input_required', inputRequests: { there } };
        }),
      }),
    );
    switchboard = use(await startSwitchboard(peer.configuration(), { inputWaitMs: 400 }));
  });

  it('fails the call with the error of the client', async () => {
    const call = await AskedCall.begin(await open(), 'refused');
    await call.refuse(await call.question(), { code: -32000, message: 'I am too shy' });
    const { error } = await call.outcome();
    expect(error?.message).toContain('I am too shy');
    await another();
    expect(timesCalled('refused')).toBe(1);
  });

  it('cancels its other requests when the client responds to one with an error', async () => {
    const call = await AskedCall.begin(await open(), 'both');
    const [first, second] = [await call.question(1), await call.question(2)];
    await call.refuse(first, { code: -32000, message: 'no' });
    await call.withdrawn(second);
    expect((await call.outcome()).error?.message).toContain('no');
  });

  it.each([
    ['elicitation', 'unable', {}],
    ['URL', 'url', { elicitation: { form: {} } }],
  ])('fails the call of a client without support, and names %s', async (lacked, name, capabilities) => {
    const { error } = await (await open(capabilities)).call(name);
    expect(error?.message).toContain(lacked);
    expect(error?.data?.code).toBe('client_unavailable');
    expect(timesCalled(name)).toBe(1);
  });

  it('fails the call after inputWaitMs, and cancels the server request', async () => {
    const call = await AskedCall.begin(await open(), 'ignored');
    const question = await call.question();
    await call.withdrawn(question);
    const { error } = await call.outcome();
    expect(error?.message).toMatch(/did not answer within 400 ms.*"modern"/);
    await call.answer(question, { action: 'decline' });
    await another();
    expect(timesCalled('ignored')).toBe(1);
  });

  it('is cancelled when the client cancels its call, and the server gets nothing more', async () => {
    const session = await open();
    const stream = await session.listen();
    const call = await AskedCall.begin(session, 'cancelled');
    const question = await call.question();
    await session.notify('notifications/cancelled', { requestId: 1 });
    await Promise.race([
      call.withdrawn(question),
      stream.message(({ method }) => method === 'notifications/cancelled'),
    ]);
    await call.stream.ended;
    await call.answer(question, { action: 'accept', content: {} });
    await another();
    expect(timesCalled('cancelled')).toBe(1);
  });

  it('ends with the session, and the server gets nothing more', async () => {
    const session = await open();
    const call = await AskedCall.begin(session, 'ended');
    await call.question();
    await session.end();
    await call.stream.ended;
    await another();
    expect(timesCalled('ended')).toBe(1);
  });
});
