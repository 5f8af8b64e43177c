import { execFileSync } from 'node:child_process';
import { mkdir, readdir, realpath } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli, temporaryFolder } from '../helpers/cli.ts';

const source = new URL('../../src/home.ts', import.meta.url).href;

function homeWith(cwd: string, env: Record<string, string>): string {
  const code = `import(${JSON.stringify(source)}).then(({ home }) => console.log(home()))`;
  return execFileSync(process.execPath, ['-e', code], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    encoding: 'utf8',
  }).trim();
}

describe('the home of Switchboard', () => {
  it("is the user's default if the variable is empty, never the current folder", async () => {
    await using folder = await temporaryFolder();
    const cwd = join(folder.path, 'work');
    await mkdir(cwd);
    const made = await runCli(['token'], { cwd, env: { SWITCHBOARD_HOME: '', HOME: folder.path } });
    expect(made.stderr).toContain(`The token is new, in ${join(folder.path, '.switchboard', 'token')}.`);
    expect(await readdir(cwd)).toEqual([]);
    expect(homeWith(cwd, { SWITCHBOARD_HOME: '', HOME: '' })).toBe(join(userInfo().homedir, '.switchboard'));
  });

  it('is resolved against the current folder if it is relative', async () => {
    await using folder = await temporaryFolder();
    const cwd = await realpath(folder.path);
    expect(homeWith(cwd, { SWITCHBOARD_HOME: 'own' })).toBe(join(cwd, 'own'));
  });
});
