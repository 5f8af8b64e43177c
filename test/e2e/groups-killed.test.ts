import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { FastClient } from '../helpers/fast-client.ts';
import { type LoadResult, load } from '../helpers/load.ts';
import { type Answerer, allReady, nextState, tally } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

const REPLICAS = 4;
const AT_ONCE = 32;

/** Calls a tool continuously while four replicas are killed, each after the last one has restarted. */
async function callWhileKilling(
  tool: 'echo' | 'count',
  ledger: string,
): Promise<{ results: LoadResult[]; killed: number[] }> {
  await using switchboard = await startSwitchboard({
    box: {
      ...fixtureServer('answers-after-cancel', { FIXTURE_LEDGER: ledger }),
      replicas: REPLICAS,
      startup: 'parallel',
    },
  });
  await allReady(switchboard, { box: REPLICAS });
  await using client = await FastClient.connect(switchboard.url);
  const before = await load(client, 'echo', 1, (made) => made < REPLICAS);
  const killed = before.map(({ by }) => by!.pid);
  expect(new Set(killed).size).toBe(REPLICAS);

  let isKilling = true;
  const loaded = load(client, tool, AT_ONCE, () => isKilling);
  for (const pid of killed) {
    const back = nextState(switchboard, 'box', 'ready');
    process.kill(pid, 'SIGKILL');
    await back;
  }
  isKilling = false;
  return { results: await loaded, killed };
}

describe('while replicas are killed one after the other', () => {
  it('no call of a read-only tool fails, and all others continue [G4, G6]', async () => {
    await using folder = await temporaryFolder();
    const { results, killed } = await callWhileKilling('echo', join(folder.path, 'ledger'));
    expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(tally(results.map(({ by }) => killed.includes(by!.pid))).get(false)).toBeGreaterThan(0);
  });

  it('only calls in flight of a tool with side effects fail, and none runs twice [G4]', async () => {
    await using folder = await temporaryFolder();
    const ledger = join(folder.path, 'ledger');
    const { results, killed } = await callWhileKilling('count', ledger);
    const lines = (await readFile(ledger, 'utf8')).trim().split('\n');
    const executions = lines.map((line) => JSON.parse(line) as Answerer & { key: string });
    const byKey = Map.groupBy(executions, ({ key }) => key);
    for (const { key, by, error } of results) {
      const pids = (byKey.get(key) ?? []).map(({ pid }) => pid);
      if (error === undefined) {
        expect(pids).toEqual([by!.pid]);
        continue;
      }
      expect(error).toMatchObject({
        code: -32603,
        message: expect.stringContaining('Server "box": The server process was killed by SIGKILL'),
        data: { code: 'server_unavailable', server: 'box' },
      });
      expect(pids.length).toBeLessThanOrEqual(1);
      for (const pid of pids) expect(killed).toContain(pid);
    }
    const failed = results.filter(({ error }) => error !== undefined);
    expect(failed.length).toBeLessThanOrEqual(REPLICAS * AT_ONCE);
    expect(results.length - failed.length).toBeGreaterThan(0);
  });
});
