import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { allReady, serverOf, serverOnce } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** No queued call times out during a test. */
const patient = { timeoutMs: 3_600_000, connectTimeoutMs: 3_600_000 };
const prefersEurope = { 'dev.switchboard/prefer': { labels: { region: 'eu' } } };

function textOf({ result, error }: RpcMessage): string {
  if (error !== undefined) throw new Error(error.message);
  return (result!.content as [{ text: string }])[0].text;
}

/** Two servers of one group with one slot each; the European one hangs when it restarts. */
async function startRegions() {
  const [witness, folder] = [await Witness.open(), await temporaryFolder()];
  const counted = { ...witness.env('paris'), STARTS_IN: folder.path, HANGING_STARTS: '2' };
  const rules = { group: 'pool', concurrency: 1, startup: 'parallel' };
  const switchboard = await startSwitchboard(
    {
      paris: { ...fixtureServer('hangs-on-some-starts', counted), ...rules, labels: { region: 'eu' } },
      oregon: {
        ...fixtureServer('reports-calls', witness.env('oregon')),
        ...rules,
        labels: { region: 'us' },
      },
    },
    patient,
  );
  await allReady(switchboard, { paris: 1, oregon: 1 });
  const session = await RawSession.open(switchboard.url);
  return {
    witness,
    switchboard,
    work: (text: string) =>
      session.request('tools/call', { name: 'work', arguments: { text }, _meta: prefersEurope }),
    async [Symbol.asyncDispose]() {
      await switchboard.stop();
      await witness[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

describe.concurrent('queued calls', () => {
  it('of a server that dies go to another that is available [G6]', async () => {
    await using regions = await startRegions();
    const { witness, switchboard, work } = regions;
    const running = work('running');
    const { pid } = await witness.sees('paris', 'work');
    const texts = ['one', 'two', 'three'];
    const waiting = texts.map(work);
    await serverOnce(switchboard, 'paris', ({ queued }) => queued === texts.length);
    witness.tell('oregon', 'finish all');
    process.kill(pid, 'SIGKILL');
    expect(await running).toMatchObject({ error: { data: { code: 'server_unavailable', server: 'paris' } } });
    expect((await Promise.all(waiting)).map(textOf)).toEqual(texts);
    expect(await witness.severalOf('oregon', 'work', texts.length)).toHaveLength(texts.length);
    expect(await serverOf(switchboard, 'paris')).toMatchObject({
      state: 'starting',
      in_flight: 0,
      queued: 0,
    });
  });

  it('for a replica that hangs at its start go to its sibling when that is available [G6]', async () => {
    await using folder = await temporaryFolder();
    await using switchboard = await startSwitchboard(
      {
        box: {
          ...fixtureServer('hangs-on-some-starts', { STARTS_IN: folder.path, HANGING_STARTS: '3' }),
          replicas: 2,
          idleStopMs: 500,
        },
      },
      patient,
    );
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    await serverOnce(switchboard, 'box', ({ replicas }) => replicas.every(({ state }) => state === 'idle'));
    const calls = Array.from({ length: 4 }, () => session.callText('whoami'));
    const pids = (await Promise.all(calls)).map((text) => JSON.parse(text).pid);
    expect(new Set(pids).size).toBe(1);
    const { replicas } = await serverOf(switchboard, 'box');
    expect(replicas).toContainEqual(expect.objectContaining({ state: 'starting', in_flight: 0, queued: 0 }));
  });
});
