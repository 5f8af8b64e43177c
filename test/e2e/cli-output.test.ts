import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { mainProgram } from '../helpers/programs.ts';

async function runInto(outputs: string, home: string, words: string[]) {
  const script = `set -o pipefail; "$@" ${outputs}`;
  const child = spawn('bash', ['-c', script, 'bash', process.execPath, mainProgram, ...words], {
    env: { ...process.env, SWITCHBOARD_HOME: home, DATABASE_URL: 'none' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, stderr };
}

describe('a table', () => {
  it('has one line per row on a terminal, and full errors elsewhere', async () => {
    await using home = await temporaryFolder();
    const path = join(home.path, 'mcp.json');
    const failing = `console.error('${'long '.repeat(100)}end'); process.exit(1)`;
    const mcpServers = { failing: { command: process.execPath, args: ['-e', failing] } };
    await writeFile(path, JSON.stringify({ mcpServers }));
    const env = { ...process.env, SWITCHBOARD_HOME: home.path, DATABASE_URL: 'none' };
    const words = [process.execPath, mainProgram, 'ls', '--config', path];
    const onTerminal = ['-qec', `stty cols 60; ${words.join(' ')}`, '/dev/null'];
    const terminal = spawn('script', onTerminal, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    expect((await text(terminal.stdout)).trimEnd()).toMatch(/^failing {2}backing off {2}stdio {2}.{20,}…$/);
    terminal.stdin.end();
    const json = spawn(words[0]!, [...words.slice(1), '--json'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    expect(JSON.parse(await text(json.stdout))[0].error).toContain('long end');
  });
});

describe('a command whose output cannot be written', () => {
  it.each([
    ['--help', 0],
    ['check', 0],
    ['token', 0],
    ['ls --url http://127.0.0.1:1', 3],
  ])('exits with its usual code if the reader is gone: %s', async (line, code) => {
    await using home = await temporaryFolder();
    const path = join(home.path, 'mcp.json');
    await writeFile(path, '{"mcpServers": {}}');
    const words = line === 'check' ? ['check', path] : line.split(' ');
    const outcome = await runInto('| true', home.path, words);
    expect(outcome).toMatchObject({ code, stderr: expect.not.stringContaining('EPIPE') });
    expect(await runInto('2>&1 | true', home.path, words)).toEqual({ code, stderr: '' });
  });

  it('fails with one line if the disk is full', async () => {
    await using home = await temporaryFolder();
    expect(await runInto('> /dev/full', home.path, ['--help'])).toEqual({
      code: 1,
      stderr: 'error: Cannot write the output: ENOSPC: no space left on device, write\n',
    });
  });
});
