import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { mainProgram } from '../helpers/programs.ts';

/** Runs a command with its outputs where the shell is told to. */
async function runInto(outputs: string, home: string, words: string[]) {
  const script = `set -o pipefail; "$@" ${outputs}`;
  const child = spawn('bash', ['-c', script, 'bash', process.execPath, mainProgram, ...words], {
    env: { ...process.env, SWITCHBOARD_HOME: home, DATABASE_URL: 'none' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, stderr };
}

describe('a command whose output cannot be written', () => {
  it.each([
    ['--help', 0],
    ['check', 0],
    ['token', 0],
    ['ls --url http://127.0.0.1:1', 3],
  ])('ends as it would have where the reader is gone: %s', async (line, code) => {
    await using home = await temporaryFolder();
    const path = join(home.path, 'mcp.json');
    await writeFile(path, '{"mcpServers": {}}');
    const words = line === 'check' ? ['check', path] : line.split(' ');
    const outcome = await runInto('| true', home.path, words);
    expect(outcome).toMatchObject({ code, stderr: expect.not.stringContaining('EPIPE') });
    expect(await runInto('2>&1 | true', home.path, words)).toEqual({ code, stderr: '' });
  });

  it('says so in a line, and fails, where there is no space', async () => {
    await using home = await temporaryFolder();
    expect(await runInto('> /dev/full', home.path, ['--help'])).toEqual({
      code: 1,
      stderr: 'error: The output cannot be written: ENOSPC: no space left on device, write\n',
    });
  });
});
