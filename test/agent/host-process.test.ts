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

describe('a process with an agent in it', () => {
  it.each([
    ['ends by itself', (host: Host) => host.stdin.write('end\n'), [3, null]],
    ['is told to end', (host: Host) => host.kill('SIGTERM'), [null, 'SIGTERM']],
    ['is interrupted', (host: Host) => host.kill('SIGINT'), [null, 'SIGINT']],
  ])('takes its servers with it, also stubborn ones, when it %s', async (_how, end, expected) => {
    await using scene = await openScene([]);
    const { host, exited } = await startHost(scene);
    end(host);
    expect(await exited).toEqual(expected);
    await scene.witness.sees('stubborn', 'end');
    expect(await scene.records()).toEqual([]);
  });

  it('that is killed leaves a note with which the next agent ends its servers', async () => {
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

  it('says which Node it needs on an older one', async () => {
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

/** Runs a program with an agent that has a server which ends neither with its stdin nor on SIGTERM. */
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
