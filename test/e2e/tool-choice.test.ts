import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli, temporaryFolder } from '../helpers/cli.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const box = fixtureServer('toolbox');
const all = ['add', 'echo', 'environment', 'flood', 'log', 'pid', 'progress', 'wait'];

let switchboard: RunningSwitchboard;
setUp(async (use) => {
  switchboard = use(await startSwitchboard({}, {}, { database: 'shared' }));
});

/** Options must precede the words after --. */
function cli(...words: string[]) {
  const behind = words.indexOf('--');
  return runCli(words.toSpliced(behind === -1 ? words.length : behind, 0, '--url', switchboard.baseUrl));
}

async function newProject(name: string): Promise<(...words: string[]) => Promise<string>> {
  const done = async (...words: string[]) => {
    const { code, stdout, stderr } = await cli(...words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };
  await done('project', 'add', name);
  return done;
}

async function toolsOf(project: string): Promise<string[]> {
  const { stdout } = await cli('ls', 'tools', '-P', project, '--json');
  return (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name).sort();
}

it('a server of the file offers its allowed tools, and follows edits', async () => {
  await using own = await startSwitchboard({
    box: { ...box, tools: { allow: ['e*', 'pid'], deny: ['environ*'] } },
  });
  const run = (...words: string[]) => runCli([...words, '--url', own.baseUrl]);
  expect(JSON.parse((await run('ls', 'tools', '--json')).stdout)).toMatchObject([
    { name: 'echo' },
    { name: 'pid' },
  ]);
  const pid = (await run('call', 'pid')).stdout;
  for (const name of ['environment', 'box__environment', 'add', 'box__add']) {
    expect(await run('call', name)).toMatchObject({
      code: 1,
      stderr: `error: Unknown tool: ${name} (it is switched off)\n`,
    });
  }
  await own.configure({ box: { ...box, tools: { deny: ['add'] } } });
  await own.event(({ event, changed }) => event === 'configuration' && String(changed).includes('box'));
  expect((await run('call', 'environment', 'name=X')).stdout).toBe('not set\n');
  // The server was not restarted.
  expect((await run('call', 'pid')).stdout).toBe(pid);
  expect((await run('call', 'add')).code).toBe(1);
});

it('servers from the API, an import and a product do the same', async () => {
  const done = await newProject('kinds');
  const command = ['--', box.command, ...box.args];
  await done(
    'server',
    'add',
    'one',
    '-P',
    'kinds',
    '--allow-tool',
    'p*',
    '--deny-tool',
    'progress',
    ...command,
  );
  expect(await toolsOf('kinds')).toEqual(['pid']);
  expect(await done('server', 'show', 'one', '-P', 'kinds')).toMatch(
    /^allowed tools +p\*\ndenied tools +progress$/m,
  );
  await done('server', 'set', 'one', '-P', 'kinds', '--unset', 'tools');
  expect(await toolsOf('kinds')).toEqual(all);
  await done('server', 'rm', 'one', '-P', 'kinds');

  await using folder = await temporaryFolder();
  const file = join(folder.path, 'file.json');
  await writeFile(file, JSON.stringify({ mcpServers: { two: { ...box, tools: { allow: ['echo'] } } } }));
  await done('import', file, '-P', 'kinds');
  expect(await toolsOf('kinds')).toEqual(['echo']);
  const three = { name: 'three', transport: 'stdio', ...box, tools: { allow: ['pid'] } };
  await writeFile(file, JSON.stringify({ name: 'kit', version: '1', mcp: { servers: [three] } }));
  await done('product', 'install', file, '-P', 'kinds');
  expect(await toolsOf('kinds')).toEqual(['echo', 'pid']);
});

it('tools that a server excludes are shown as off, and cannot be enabled', async () => {
  const done = await newProject('shown');
  await done('server', 'add', 'box', '-P', 'shown', '--deny-tool', 'pid', '--', box.command, ...box.args);
  expect(await done('tool', 'ls', '--all', '-P', 'shown')).toMatch(/^box__pid +box +off /m);
  expect(await cli('tool', 'enable', 'pid', '-P', 'shown')).toMatchObject({
    code: 1,
    stderr:
      'error: The setting "tools" of the server "box" leaves out the tool "pid": change that setting.\n',
  });
});

it('calls in a group go to the servers that offer the tool', async () => {
  const done = await newProject('groups');
  const add = (name: string, ...options: string[]) =>
    done(
      'server',
      'add',
      name,
      '-P',
      'groups',
      '--group',
      'team',
      ...options,
      '--',
      box.command,
      ...box.args,
    );
  await add('one', '--deny-tool', 'environment', '-e', 'WHO=one');
  await add('two', '-e', 'WHO=two');
  const ask = () => done('call', 'environment', 'name=WHO', '-P', 'groups');
  expect([await ask(), await ask(), await ask()]).toEqual(['two\n', 'two\n', 'two\n']);
  expect((await cli('call', 'one__environment', 'name=WHO', '-P', 'groups')).code).toBe(1);
});

it('tool disable and enable accept patterns', async () => {
  const done = await newProject('patterns');
  await done('server', 'add', 'box', '-P', 'patterns', '--', box.command, ...box.args);
  expect(await done('tool', 'disable', 'box__p*', '-P', 'patterns')).toBe(
    'pid of box is disabled\nprogress of box is disabled\n',
  );
  expect(await toolsOf('patterns')).toEqual(all.filter((name) => !name.startsWith('p')));
  expect((await cli('call', 'pid', '-P', 'patterns')).code).toBe(1);
  const shown = JSON.parse(await done('tool', 'enable', '*', '-P', 'patterns', '--json'));
  expect(shown).toMatchObject([
    { tool: 'pid', enabled: true },
    { tool: 'progress', enabled: true },
  ]);
  expect(await toolsOf('patterns')).toEqual(all);
  expect(await cli('tool', 'disable', 'nothing*', '-P', 'patterns')).toMatchObject({
    code: 1,
    stderr: 'error: No tool in project "patterns" matches "nothing*".\n',
  });
});
