import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { RawModern } from './raw-modern.ts';

const changes: [before: string, after: string][] = [
  ['legacy', 'modern'],
  ['modern', 'legacy'],
  ['modern', 'strict'],
  ['strict', 'modern'],
  ['strict', 'both'],
  ['both', 'touchy'],
  ['touchy', 'modern'],
  ['legacy', 'mute'],
];

describe('a stdio server that restarts as another kind', () => {
  let folder: string;
  let witness: Witness;
  let switchboard: RunningSwitchboard;

  const fileOf = (server: string) => join(folder, server);
  const nameOf = ([before, after]: [string, string]) => `${before}-${after}`;

  setUp(async (use) => {
    folder = use(await temporaryFolder()).path;
    witness = use(await Witness.open());
    const servers = changes.map((change) => {
      const name = nameOf(change);
      return [name, fixtureServer('eras/speaks-given-era', { ...witness.env(name), ERA_FILE: fileOf(name) })];
    });
    for (const change of changes) await writeFile(fileOf(nameOf(change)), change[0]);
    switchboard = use(
      await startSwitchboard(Object.fromEntries(servers), {
        naming: 'always',
        backoffFirstMs: 10,
        backoffMaxMs: 50,
        breakerFailures: 1_000,
        connectTimeoutMs: 4_000,
      }),
    );
  });

  it.concurrent.each(changes)('works again: %s, then %s', async (before, after) => {
    const server = nameOf([before, after]);
    const session = await RawSession.open(switchboard.url);
    const stateless = new RawModern(switchboard.url);
    const name = `${server}__echo`;
    expect((await session.call(name, { which: before })).error).toBeUndefined();
    await writeFile(fileOf(server), after);
    // The process that got discovery: another may have been started for initialize.
    const { pid } = witness.seenBy(server, 'gets').findLast(({ method }) => method === 'tools/list')!;
    process.kill(pid, 'SIGKILL');
    await witness.sees(server, 'gets', ({ kind, method }) => kind === after && method === 'tools/list');
    expect((await session.call(name, { which: 'session' })).error).toBeUndefined();
    expect((await stateless.call(name, { which: 'stateless' })).error).toBeUndefined();
    for (const which of [before, 'session', 'stateless']) {
      const isIt = (given: unknown) => (given as { which?: string } | undefined)?.which === which;
      expect(witness.seenBy(server, 'gets').filter(({ given }) => isIt(given))).toHaveLength(1);
    }
  });
});
