import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { isAlive, startScript, whenReplaced } from '../../test/helpers/processes.ts';
import { groupCarries, groupRuns, parseStat, pidSpace, readProcess } from './process-table.ts';

const onLinux = process.platform === 'linux';

describe('a line of /proc/<pid>/stat', () => {
  const numbers = '1 77 77 0 -1 4194304 98 0 0 0 0 0 0 0 20 0 1 0 1121399 3133440';

  it.each(['sh', 'two words', 'a) S 1 2 3', '(', ')', 'line\nbreak'])('is parsed for the name %j', (name) => {
    expect(parseStat(`99 (${name}) S ${numbers}\n`)).toEqual({
      startTime: '1121399',
      group: 77,
      isZombie: false,
    });
  });

  it('identifies a zombie', () => {
    expect(parseStat(`99 (sh) Z ${numbers}`).isZombie).toBe(true);
  });

  it('does not identify a zombie while other threads still run', () => {
    const threads = numbers.replace(' 20 0 1 0 ', ' 20 0 2 0 ');
    expect(parseStat(`99 (sh) Z ${threads}`).isZombie).toBe(false);
  });
});

// Linux has ps too, so both ways are tested there.
describe.each(onLinux ? ['linux', 'darwin'] : [process.platform])(
  'a process, looked up as on %s',
  (platform) => {
    const read = (pid: number) => readProcess(pid, platform as NodeJS.Platform);

    it('has a constant start time and a group', async () => {
      await using leader = await startScript('echo ready; sleep 600');
      const facts = read(leader.pid);
      expect(facts).toEqual({ startTime: expect.stringMatching(/\d/), group: leader.pid, isZombie: false });
      expect(read(leader.pid)).toEqual(facts);
    });

    it('is not found after it exits', async () => {
      const child = spawn('true');
      await once(child, 'exit');
      expect(read(child.pid!)).toBe(undefined);
    });

    it('is a zombie if it has exited and its parent has not reaped it', async () => {
      await using parent = await startScript(`(${whenReplaced}) & echo $!; exec sleep 600`);
      await expect.poll(() => read(Number(parent.said))?.isZombie).toBe(true);
    });
  },
);

describe.runIf(onLinux)('on Linux', () => {
  it('pids belong to a boot and a namespace', () => {
    expect(pidSpace()).toEqual({
      boot: expect.stringMatching(/^[\da-f-]{36}$/),
      namespace: expect.stringMatching(/^pid:\[\d+\]$/),
    });
  });

  it('a group is identified by the environment of its processes', async () => {
    await using leader = await startScript('sleep 600 & echo ready; wait', { MARK: 'of this test' });
    expect(groupCarries(leader.pid, 'MARK', 'of this test')).toBe(true);
    expect(groupCarries(leader.pid, 'MARK', 'of this')).toBe(false);
    expect(groupCarries(process.pid, 'MARK', 'of this test')).toBe(false);
  });

  it('a group of zombies is not running', async () => {
    await using parent = await startScript(`setsid sh -c "${whenReplaced}" & echo $!; exec sleep 600`);
    const group = Number(parent.said);
    await expect.poll(() => readProcess(group)).toMatchObject({ group, isZombie: true });
    expect(isAlive(-group)).toBe(true);
    expect(groupRuns(group)).toBe(false);
    expect(groupRuns(parent.pid)).toBe(true);
  });
});
