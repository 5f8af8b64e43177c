import { expect, it } from 'vitest';
import { allReady } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { ModernPeer, says, tool } from './modern-peer.ts';
import { RawModern } from './raw-modern.ts';

const worker = fixtureServer('eras/binds-state-to-process');
const asked = { elicitation: {} };
const ada = { name: { action: 'accept', content: { name: 'Ada' } } };

it('a client that returns to a server that left its group gets an error', async () => {
  const [one, two] = [
    { ...worker, group: 'lab' },
    { ...worker, group: 'lab' },
  ];
  await using switchboard = await startSwitchboard({ one, two }, { startup: 'parallel' });
  await allReady(switchboard, { one: 1, two: 1 });
  const client = new RawModern(switchboard.url, { capabilities: asked });
  const states = [];
  for (let time = 0; time < 2; time++) {
    const { result } = await client.call('ask');
    states.push(String(result?.requestState));
  }
  const listening = await client.listen({ toolsListChanged: true });
  await switchboard.configure({ two }, { startup: 'parallel' });
  await listening.stream.message(({ method }) => method === 'notifications/tools/list_changed');
  const outcomes = [];
  for (const requestState of states) {
    const { result, error } = await client.call('ask', {}, { inputResponses: ada, requestState });
    outcomes.push(error?.message ?? result?.resultType);
  }
  expect(outcomes.toSorted()).toEqual([
    'complete',
    'params.requestState is that of a server that is gone: send the request again without it.',
  ]);
});

it('a server state that looks like one of Switchboard returns to the server unchanged', async () => {
  const requestState = 'sb1.somebody-elses.state';
  await using peer = await ModernPeer.start({
    inner: {
      lists: { 'tools/list': () => ({ tools: [tool('ask')] }) },
      answer: ({ params = {} }) =>
        params.requestState === undefined
          ? { resultType: 'input_required', inputRequests: {}, requestState }
          : says(String(params.requestState)),
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  const client = new RawModern(switchboard.url, { capabilities: asked });
  const { result } = await client.call('ask');
  expect(await client.callText('ask', {}, { requestState: result?.requestState })).toBe(requestState);
});

it('Switchboard behind Switchboard passes on input requests and their responses', async () => {
  await using inner = await startSwitchboard({ lab: { ...worker, replicas: 2 } });
  await using outer = await startSwitchboard({ inner: { url: inner.url } });
  const client = new RawModern(outer.url, { capabilities: asked });
  const { result } = await client.call('ask');
  expect(result).toMatchObject({ resultType: 'input_required', inputRequests: { name: {} } });
  const more = { inputResponses: ada, requestState: result?.requestState };
  expect(JSON.parse(await client.callText('ask', {}, more))).toMatchObject({ inputResponses: ada });
});
