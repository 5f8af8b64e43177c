import { expect, it } from 'vitest';
import { runCli, startCli } from '../helpers/cli.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const steering = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/u;
const shown = '\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u202e\\u007f';
const paint = JSON.parse(`"${shown}"`) as string;

let switchboard: RunningSwitchboard;

setUp(async (use) => {
  const dying = ['-e', `process.stderr.write(${JSON.stringify(`fatal: ${paint}\n`)}); process.exit(1)`];
  switchboard = use(
    await startSwitchboard({
      painting: fixtureServer('writes-control-characters'),
      dying: { command: process.execPath, args: dying },
    }),
  );
  await runCli(['ls', '--url', switchboard.baseUrl]);
});

it.each<[expected: string, ...words: string[]]>([
  ['fatal: ', 'ls'],
  ['described ', 'ls', 'tools'],
  ['described ', 'ls', 'prompts'],
  ['named ', 'ls', 'resources'],
  ['log ', 'logs', 'painting'],
  ['said ', 'call', 'paint'],
  ['said ', 'call', 'fail'],
  ['described ', 'ls', 'tools', '--json'],
  ['log ', 'logs', 'painting', '--json'],
  ['said ', 'call', 'paint', '--json'],
])('removes %s… in server output before it reaches the terminal', async (expected, ...words) => {
  const { stdout, stderr } = await runCli([...words, '--url', switchboard.baseUrl]);
  expect(stdout + stderr).not.toMatch(steering);
  const isJson = words.includes('--json');
  if (isJson)
    expect(JSON.stringify(JSON.parse(stdout))).toContain(JSON.stringify(expected + paint).slice(1, -1));
  else expect(stdout + stderr).toContain(expected + shown);
});

it('removes control characters from errors that repeat the arguments', async () => {
  const { stderr } = await runCli(['nonsense\u001b[2J']);
  expect(stderr).toContain('nonsense\\u001b[2J');
  expect(stderr).not.toMatch(steering);
});

it('removes control characters from the output of watch', async () => {
  await using watching = startCli(['watch', 'dying', '--url', switchboard.baseUrl]);
  expect(await watching.lines.first((line) => line.includes('fatal: '))).toContain(shown);
  await using told = startCli(['watch', 'dying', '--json', '--url', switchboard.baseUrl]);
  expect(await told.lines.first((line) => line.includes('fatal: '))).not.toMatch(steering);
});
