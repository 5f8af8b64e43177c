import { describe, expect, it } from 'vitest';
import { RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const isQuestion = ({ method }: RpcMessage) => method === 'elicitation/create';
const isWithdrawal = ({ method }: RpcMessage) => method === 'notifications/cancelled';

async function startAsking() {
  const witness = await Witness.open();
  const switchboard = await startSwitchboard({
    asking: fixtureServer('asks-on-order', witness.env('asking')),
  });
  const session = await RawSession.open(switchboard.url, '2025-11-25', { elicitation: {} });
  await session.toolNames();
  await witness.sees('asking', 'start');
  return {
    session,
    order: (order: string) => witness.tell('asking', order),
    async [Symbol.asyncDispose]() {
      await switchboard.stop();
      await witness[Symbol.asyncDispose]();
    },
  };
}

describe.concurrent('a server request', () => {
  it('that the server cancels is withdrawn on the stream where it was sent', async () => {
    await using asking = await startAsking();
    const standing = await asking.session.listen();
    asking.order('ask');
    const call = await asking.session.openCall('ask', { about: 'the weather' }, 'token');
    const { id } = await call.message(isQuestion);
    asking.order('withdraw');
    const withdrawal = await call.message(isWithdrawal);
    expect(withdrawal.params).toEqual({ requestId: id, reason: 'never mind' });
    expect(standing.messages.filter(isWithdrawal)).toEqual([]);
  });

  it('is withdrawn when the server dies, before its call fails', async () => {
    await using asking = await startAsking();
    asking.order('ask');
    const call = await asking.session.openCall('ask', { about: 'the weather' }, 'token');
    const { id } = await call.message(isQuestion);
    asking.order('die');
    await call.ended;
    expect(call.messages.slice(1)).toMatchObject([
      { method: 'notifications/cancelled', params: { requestId: id } },
      { error: { message: expect.stringContaining('exited with code 3') } },
    ]);
  });

  it('that belongs to no call is withdrawn on the standing stream when the server dies', async () => {
    await using asking = await startAsking();
    const standing = await asking.session.listen();
    asking.order('ask unasked');
    const { id } = await standing.message(isQuestion);
    asking.order('die');
    expect((await standing.message(isWithdrawal)).params).toMatchObject({ requestId: id });
  });
});
