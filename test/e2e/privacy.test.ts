import { describe, expect, it } from 'vitest';
import { type EventStream, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const PROMPTS_CHANGED = 'notifications/prompts/list_changed';

async function logOf({ baseUrl }: RunningSwitchboard, server: string): Promise<string> {
  const response = await fetch(`${baseUrl}/api/v1/projects/default/servers/${server}/logs`);
  return ((await response.json()) as { lines: string[] }).lines.join('\n');
}

/** All messages so far, without list changes. */
function wordsIn({ messages }: EventStream): unknown[] {
  return messages
    .filter(({ method }) => !method?.endsWith('list_changed'))
    .map(({ method, params }) => [method, params?.data]);
}

function both(thought: string): unknown[] {
  return [
    ['notifications/message', thought],
    ['notifications/thought', thought],
  ];
}

/** List changes reach everyone in order, so the next one proves that earlier messages have arrived. */
function nextMark({ events }: EventStream): Promise<unknown> {
  return events.next(({ message }) => message?.method === PROMPTS_CHANGED);
}

describe.concurrent('messages of a shared server outside of calls', () => {
  async function startMusing() {
    const witness = await Witness.open();
    const switchboard = await startSwitchboard({
      musing: fixtureServer('notifies-unprompted', witness.env('musing')),
    });
    const sessions = [
      await RawSession.open(switchboard.url),
      await RawSession.open(switchboard.url),
    ] as const;
    const [one, other] = sessions;
    const streams = [await one.listen(), await other.listen()] as const;
    await one.toolNames();
    await witness.sees('musing', 'start');
    return {
      witness,
      switchboard,
      sessions,
      streams,
      async think(thought: string, listeners: readonly EventStream[] = streams): Promise<void> {
        const marks = listeners.map(nextMark);
        witness.tell('musing', thought);
        await Promise.all(marks);
      },
      async [Symbol.asyncDispose]() {
        await switchboard.stop();
        await witness[Symbol.asyncDispose]();
      },
    };
  }

  it('reach everyone before any call, then the only caller, and no client after two have called', async () => {
    await using musing = await startMusing();
    const [one, other] = musing.sessions;
    const [ofOne, ofOther] = musing.streams;

    await musing.think('first thought');
    expect(wordsIn(ofOne)).toEqual(both('first thought'));
    expect(wordsIn(ofOther)).toEqual(both('first thought'));

    await one.call('greet');
    await musing.think('second thought');
    expect(wordsIn(ofOne)).toEqual([...both('first thought'), ...both('second thought')]);
    expect(wordsIn(ofOther)).toEqual(both('first thought'));

    await other.call('greet');
    await musing.think('third thought');
    expect(wordsIn(ofOne)).toEqual([...both('first thought'), ...both('second thought')]);
    expect(wordsIn(ofOther)).toEqual(both('first thought'));
    const log = await logOf(musing.switchboard, 'musing');
    expect(log).toContain('third thought');
    expect(log).not.toContain('second thought');
  });

  it('reach no client after the only caller has gone', async () => {
    await using musing = await startMusing();
    const [one] = musing.sessions;
    const [, ofOther] = musing.streams;
    await one.call('greet');
    await one.end();
    await musing.think('first thought', [ofOther]);
    expect(wordsIn(ofOther)).toEqual([]);
    expect(await logOf(musing.switchboard, 'musing')).toContain('first thought');
  });
});

it.concurrent('a server request for a cancelled call is declined, and not sent to another client', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    asking: fixtureServer('asks-on-order', witness.env('asking')),
  });
  const open = () => RawSession.open(switchboard.url, '2025-11-25', { elicitation: {} });
  const cancelling = await open();
  const busy = await open();
  const params = { name: 'ask', arguments: { about: 'a secret' } };
  const cancelled = cancelling.request('tools/call', params, 'cancelled').catch((error: unknown) => error);
  await witness.sees('asking', 'tools/call');
  await cancelling.notify('notifications/cancelled', { requestId: 'cancelled' });
  await cancelled;

  const call = await busy.openCall('hold', {}, 'token');
  witness.tell('asking', 'ask');
  const { answer } = await witness.sees('asking', 'answer');
  expect(answer).toMatchObject({
    error: { message: expect.stringContaining('not clear which client it is for') },
  });
  witness.tell('asking', 'release');
  await call.ended;
  expect(call.messages).toMatchObject([
    { method: 'notifications/progress' },
    { result: { content: [{ text: 'released' }] } },
  ]);
});

it.concurrent("the last output of one client's isolated process does not reach another client", async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    parting: { ...fixtureServer('notifies-on-exit', witness.env('parting')), isolation: 'session' },
  });
  const leaving = await RawSession.open(switchboard.url);
  const staying = await RawSession.open(switchboard.url);
  const stream = await staying.listen();
  await leaving.call('tell', { secret: 'of the one who leaves' });
  await staying.call('tell', { secret: 'of the one who stays' });
  const { pid } = await witness.sees('parting', 'told');
  await leaving.end();
  await witness.sees('parting', 'end', (sighting) => sighting.pid === pid);
  const mark = nextMark(stream);
  await staying.call('announce');
  await mark;
  expect(wordsIn(stream)).toEqual([]);
});
