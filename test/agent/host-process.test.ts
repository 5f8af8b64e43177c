import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { isAlive } from '../helpers/processes.ts';
import { fixtureProgram } from '../helpers/programs.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import type { Witness } from '../helpers/witness.ts';
import { openScene, type Scene } from './scene.ts';

type Host = ChildProcessByStdio<Writable, Readable, null>;

describe('a process with an agent', () => {
  it.each([
    ['exits', (host: Host) => host.stdin.write('end\n'), [3, null]],
    ['gets SIGTERM', (host: Host) => host.kill('SIGTERM'), [null, 'SIGTERM']],
    ['gets SIGINT', (host: Host) => host.kill('SIGINT'), [null, 'SIGINT']],
  ])('ends its servers, even those that ignore SIGTERM, when it %s', async (_how, end, expected) => {
    await using scene = await openScene([]);
    const { host, exited } = await startHost(scene);
    end(host);
    expect(await exited).toEqual(expected);
    await scene.witness.sees('stubborn', 'end');
    expect(await scene.records()).toEqual([]);
  });

  it('leaves a record when it is killed, so that the next agent ends its servers', async () => {
    await using scene = await openScene([], (witness) => ({
      servers: { box: fixtureServer('toolbox', witness.env('box')) },
    }));
    const { host, exited, pid } = await startHost(scene);
    host.kill('SIGKILL');
    await exited;
    expect(isAlive(pid)).toBe(true);
    await scene.agent.start();
    await scene.witness.sees('stubborn', 'end');
    expect(scene.warnings).toEqual([expect.stringContaining(`They are stopped now: process ${pid}`)]);
  });

  it('names the required version of Node on an older one', async () => {
    const older = "Object.defineProperty(process.versions, 'node', { value: '22.4.1' })";
    const words = ['--import', `data:text/javascript,${older}`, fixtureProgram('runs-agent')];
    const { code, stderr } = await promisify(execFile)(process.execPath, words).then(
      () => ({ code: 0, stderr: '' }),
      (error: { code: number; stderr: string }) => error,
    );
    expect(code).toBe(1);
    expect(stderr).toContain('switchboard requires Node.js 24 or newer, but this is 22.4.1');
  });
});

/** Runs a program with an agent whose server ignores both the end of stdin and SIGTERM. */
async function startHost({
  witness,
}: Scene): Promise<{ host: Host; exited: Promise<unknown[]>; pid: number }> {
  const servers = { stubborn: stubborn(witness) };
  const host = spawn(process.execPath, [fixtureProgram('runs-agent'), JSON.stringify(servers)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(host, 'exit');
  await once(createInterface({ input: host.stdout }), 'line');
  const { pid } = await witness.sees('stubborn', 'start');
  return { host, exited, pid };
}

function stubborn(witness: Witness) {
  return fixtureServer('ignores-sigterm', witness.env('stubborn'));
}
