import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { Inbox } from '../helpers/inbox.ts';
import { isRunning, untilGone } from '../helpers/processes.ts';
import { mainProgram } from '../helpers/programs.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** npm marks its child processes with these variables. */
const isOfNpm = ([name]: [string, string | undefined]) => /^npm_/i.test(name);
const plainEnvironment = Object.fromEntries(Object.entries(process.env).filter((each) => !isOfNpm(each)));

/** Starts Switchboard through a launcher; `command` runs the script "start". */
async function startThrough(command: string, words: string[], env: NodeJS.ProcessEnv = {}) {
  const folder = await temporaryFolder();
  const witness = await Witness.open();
  const mcpServers = { box: { ...fixtureServer('toolbox', witness.env('box')), startup: 'parallel' } };
  await writeFile(join(folder.path, 'mcp.json'), JSON.stringify({ mcpServers }));
  const start = `"${process.execPath}" "${mainProgram}" up --port 0 --json`;
  await writeFile(join(folder.path, 'package.json'), JSON.stringify({ scripts: { start } }));
  const parent = spawn(
    command,
    words.map((word) => word.replace('START', start)),
    {
      cwd: folder.path,
      env: { ...plainEnvironment, SWITCHBOARD_HOME: folder.path, DATABASE_URL: 'none', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const lines = new Inbox<string>();
  createInterface({ input: parent.stdout }).on('line', (line) => lines.add(line));
  const { pid } = JSON.parse(await lines.first((line) => line.includes('"listening"'))) as { pid: number };
  const { pid: server } = await witness.sees('box', 'start');
  onTestFinished(async () => {
    for (const each of [parent.pid!, pid]) if (isRunning(each)) process.kill(each, 'SIGKILL');
    await untilGone(pid);
    await witness[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  return { parent, pid, server };
}

it.each<[name: string, signal: NodeJS.Signals, ...words: string[]]>([
  ['npm start', 'SIGTERM', 'npm', 'start'],
  ['npm start', 'SIGKILL', 'npm', 'start'],
  ['npx', 'SIGTERM', 'npm', 'exec', '--call', 'START'],
])('exits with all its processes when %s gets a %s', async (_name, signal, command, ...words) => {
  const { parent, pid, server } = await startThrough(command!, words);
  parent.kill(signal);
  await untilGone(pid);
  await untilGone(server);
});

it('keeps running when another parent exits, or when it leads its own session', async () => {
  const inBackground = ['-c', 'START & wait'];
  const ofNpm = { npm_command: 'run-script' };
  const [plain, apart, ended] = await Promise.all([
    startThrough('sh', inBackground),
    startThrough('sh', ['-c', 'setsid START & wait'], ofNpm),
    startThrough('sh', inBackground, ofNpm),
  ]);
  for (const { parent } of [plain, apart, ended]) {
    const exited = once(parent, 'exit');
    parent.kill('SIGKILL');
    await exited;
  }
  await untilGone(ended.pid);
  expect([plain.pid, apart.pid].map(isRunning)).toEqual([true, true]);
});

it('exits with its launcher if an outdated Node started that', async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const inside = (path: string) => join(folder.path, path);
  for (const each of ['bin', 'dist', 'node_modules/.bin']) await mkdir(inside(each), { recursive: true });
  await copyFile(join(import.meta.dirname, '../../bin/switchboard.js'), inside('bin/switchboard.js'));
  await writeFile(inside('package.json'), '{"type": "module"}');
  await writeFile(inside('dist/main.js'), `import ${JSON.stringify(pathToFileURL(mainProgram).href)};`);
  await symlink(process.execPath, inside('node_modules/.bin/node'));
  await writeFile(
    inside('old.mjs'),
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });',
  );
  const words = ['--import', inside('old.mjs'), inside('bin/switchboard.js'), 'up', '--port', '0', '--json'];
  const { parent, pid, server } = await startThrough(process.execPath, words);
  expect(pid).not.toBe(parent.pid);
  parent.kill('SIGKILL');
  await untilGone(pid);
  await untilGone(server);
});
