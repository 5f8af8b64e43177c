import { existsSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { type Finished, runCli, startCli } from '../helpers/cli.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

const { command, args } = fixtureServer('toolbox');

async function start(hosting: object = {}) {
  const switchboard = await startSwitchboard({}, { hosting }, { database: 'shared' });
  onTestFinished(() => switchboard.stop());
  const address = ['--url', switchboard.baseUrl];
  const cli = (words: string[], behind: string[] = []): Promise<Finished> =>
    runCli([...words, ...address, ...(behind.length === 0 ? [] : ['--', ...behind])]);
  return { cli, address };
}

it('runs, calls, shows, restarts, stops and removes a hosted server', async () => {
  const { cli, address } = await start();
  const run = [
    'host',
    '--name',
    'mine',
    '--provider',
    'process',
    '--volume',
    '/data',
    '--env',
    'TOKEN=sesame',
  ];
  const added = await cli(run, [command, ...args]);
  expect(added, added.stderr).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^mine is ready \(process(, \d+ tools)?\)\n$/),
    stderr: expect.stringContaining('added hosted server mine to project default\n'),
  });
  expect(await cli(run, [command, ...args])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'error: There is a server "mine" in project "default" already.\n',
  });
  expect((await cli(['call', 'echo', 'text=well'])).stdout).toBe('well\n');
  expect((await cli(['hosted'])).stdout).toMatch(/^mine {2}default {2}ready {2}process {2}\S+ .*up \d+ s\n$/);
  const shown = await cli(['hosted', 'show', 'mine']);
  expect(shown.stdout).toMatch(/^environment +TOKEN \(values are not shown\)$/m);
  expect(shown.stdout).not.toContain('sesame');

  await using following = startCli(['logs', '-f', 'mine', '--json', ...address]);
  const seen = following.lines.items;
  await following.lines.first(() => true);
  const before = seen.length;
  expect(await cli(['restart', 'mine'])).toMatchObject({ code: 0, stdout: 'mine is ready\n' });
  await following.lines.several(before + 1, () => true);
  for (const line of seen)
    expect(JSON.parse(line)).toEqual({ at: expect.any(String), line: expect.any(String) });

  expect(await cli(['stop', 'mine'])).toMatchObject({ code: 0, stdout: 'mine is stopped\n' });
  expect((await cli(['hosted'])).stdout).toContain('stopped');
  expect(await cli(['restart', 'mine'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Start it: switchboard start mine\n'),
  });
  expect(await cli(['start', 'mine'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('is ready'),
  });
  expect((await cli(['call', 'echo', 'text=again'])).stdout).toBe('again\n');
  const broken = await cli(['hosted', 'set', 'mine'], ['switchboard-has-no-such']);
  expect(broken).toMatchObject({ code: 1, stdout: '' });
  expect(broken.stderr).toContain('"switchboard-has-no-such" was not found');
  expect(broken.stderr).not.toContain('crash');
  const mended = await cli(
    ['hosted', 'set', 'mine', '--memory', '1G', '--env', 'MORE=1'],
    [command, ...args],
  );
  expect(mended, mended.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('mine is ready') });
  expect((await cli(['hosted', 'show', 'mine'])).stdout).toMatch(/^limits .* 1G memory.*$/m);
  const removed = await cli(['rm', 'mine', '--volumes', '--yes']);
  expect(removed).toMatchObject({ code: 0, stdout: 'removed hosted server mine\n' });
  expect(await following.finished).toMatchObject({ code: 0 });
  expect((await cli(['hosted'])).stdout).toBe('no hosted servers\n');
});

it('reports why a hosted server cannot run, and what to do', async () => {
  const { cli } = await start();
  const failed = await cli(
    ['host', '--name', 'nothing', '--provider', 'process'],
    ['switchboard-has-no-such'],
  );
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('switchboard-has-no-such');
  expect(failed.stderr).toContain('switchboard rm nothing');
  expect(await cli(['host', 'Not an image', '--name', 'x'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('image: must name an image'),
  });
  expect(await cli(['restart', 'nobody'])).toMatchObject({
    code: 1,
    stderr: 'error: There is no hosted server "nobody". There are: nothing.\n',
  });
});

it('fails if a hosted server runs but does not become ready, with the reason and its last output', async () => {
  const { cli } = await start({ heartbeatMs: 200, heartbeatTimeoutMs: 400 });
  const host = (name: string, script: string) =>
    cli(['host', '--name', name, '--provider', 'process', '--json'], ['sh', '-c', script]);
  const [mute, crashing] = await Promise.all([
    host('mute', 'echo "waits for a database" >&2; exec cat > /dev/null'),
    host('crashing', 'echo "FATAL: no configuration" >&2; exit 3'),
  ]);
  expect(mute.code).toBe(1);
  expect(JSON.parse(mute.stdout)).toMatchObject({
    status: 'unresponsive',
    error: expect.stringMatching(
      /has not completed the MCP handshake within 0.6 s; last output: waits for a database$/,
    ),
  });
  expect(crashing.code).toBe(1);
  expect(JSON.parse(crashing.stdout)).toMatchObject({
    status: 'backing_off',
    error: expect.stringMatching(/exited with code 3\. Last output: FATAL: no configuration$/),
    last_crash: { reason: 'exited with code 3; last output: FATAL: no configuration' },
  });
});

it('counts the secrets of a hosted server as used, protects them from removal, and names them when the server is removed', async () => {
  const { cli } = await start();
  const run = ['host', '--name', 'mine', '--provider', 'process'];
  const environment = ['--env', 'API_KEY=sk-proj-4f9a1c7be2d80635a1b2c3d4', '--env', `OTHER=\${SHARED}`];
  expect(await cli(['secret', 'set', 'SHARED', '--from-env', 'PATH'])).toMatchObject({ code: 0 });
  const added = await cli([...run, ...environment], [command, ...args]);
  expect(added, added.stderr).toMatchObject({ code: 0 });
  const [, moved] = /moved credentials into secrets of the project: (\S+)/.exec(added.stderr)!;
  const secrets = JSON.parse((await cli(['secret', 'ls', '--json'])).stdout) as object[];
  expect(secrets).toMatchObject([
    { name: moved, used_by: ['mine'] },
    { name: 'SHARED', used_by: ['mine'] },
  ]);
  const refused = await cli(['secret', 'rm', 'SHARED']);
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('The secret SHARED is used by mine, which cannot run without it'),
  });
  const removed = await cli(['rm', 'mine']);
  expect(removed.stderr).toContain(`these secrets are no longer used: ${moved}, SHARED;`);
  expect(await cli(['secret', 'rm', 'SHARED'])).toMatchObject({ code: 0 });
});

it('removes the data of a hosted server after the server is removed', async () => {
  const { cli } = await start();
  const run = ['host', '--name', 'keeper', '--provider', 'process', '--volume', '/data'];
  expect(await cli(run, [command, ...args])).toMatchObject({ code: 0 });
  const [, folder] = /^kept in +(\S+)$/m.exec((await cli(['hosted', 'show', 'keeper'])).stdout)!;
  const removed = await cli(['rm', 'keeper']);
  expect(removed.stdout).toContain(`kept for the next server of that name (${folder})`);
  expect(existsSync(folder!)).toBe(true);
  expect(await cli(['rm', 'keeper', '--volumes'])).toMatchObject({ code: 2 });
  expect(existsSync(folder!)).toBe(true);
  expect(await cli(['rm', 'keeper', '--volumes', '--yes'])).toMatchObject({
    code: 0,
    stdout: 'removed the volumes of keeper\n',
  });
  expect(existsSync(folder!)).toBe(false);
  expect(await cli(['rm', 'keeper', '--volumes', '--yes'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('project "default" has no volumes of a former server with that name'),
  });
});

it('shows the log of a hosted server with times, manual actions, and the last output of a crash once', async () => {
  const { cli } = await start();
  const host = (name: string, ...behind: string[]) =>
    cli(['host', '--name', name, '--provider', 'process', '--restart', 'never'], behind);
  await Promise.all([
    host('crashing', 'sh', '-c', 'echo "FATAL: no configuration" >&2; exit 3'),
    host('mine', command, ...args),
  ]);
  await cli(['stop', 'mine']);
  expect((await cli(['logs', 'mine'])).stdout).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}disabled$/m);
  const { stdout } = await cli(['logs', 'crashing']);
  expect(stdout.match(/FATAL: no configuration/g), stdout).toHaveLength(1);
  expect(stdout).toContain('exited with code 3');
});
