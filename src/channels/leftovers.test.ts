import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive, startScript, whenReplaced } from '../../test/helpers/processes.ts';
import type { RecordContents } from './process-record.ts';
import { endLeftovers } from './process-record.ts';
import { pidSpace, readProcess } from './process-table.ts';

const onLinux = process.platform === 'linux';
const instance = randomUUID();
const name = '4242-1.json';

let folder: string;
let reports: string[];
const endThem = () => endLeftovers(folder, (message) => reports.push(message));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  reports = [];
});
afterEach(() => rm(folder, { recursive: true }));

function recorded(pid: number): { pid: number; startTime: string } {
  return { pid, startTime: readProcess(pid)!.startTime };
}

/** A record whose owner is gone: its pid now belongs to this process. */
async function leaveRecord(
  groups: RecordContents['groups'],
  more: Partial<RecordContents> = {},
): Promise<void> {
  const owner = { pid: process.pid, startTime: 'long ago' };
  const contents: RecordContents = { instance, ...pidSpace(), owner, groups, ...more };
  await writeFile(join(folder, name), JSON.stringify(contents));
}

describe('the cleanup after a killed Switchboard', () => {
  it('ends its processes with their descendants and removes the record [M12]', async () => {
    await using polite = await startScript('(sleep 600) & echo ready; sleep 600');
    await using stubborn = await startScript(
      "trap '' TERM; (while :; do sleep 600; done) & echo ready; wait; wait",
    );
    await leaveRecord([recorded(polite.pid), recorded(stubborn.pid)]);
    await endThem();
    await Promise.all([polite.ended, stubborn.ended]);
    expect(await readdir(folder)).toEqual([]);
    expect(reports).toEqual([
      `A previous Switchboard (process ${process.pid}) was killed before it could stop its servers. They are stopped now: process ${polite.pid}, ${stubborn.pid}.`,
    ]);
  });

  it.runIf(onLinux)('ends orphaned grandchildren if they are certainly ours [M12]', async () => {
    const orphaning = '(sleep 600) & echo ready';
    await using ours = await startScript(orphaning, { SWITCHBOARD_INSTANCE: instance });
    await using others = await startScript(orphaning, { SWITCHBOARD_INSTANCE: randomUUID() });
    await using unknown = await startScript(orphaning);
    const leaders = [ours, others, unknown].map(({ pid }) => pid);
    await expect.poll(() => leaders.some((pid) => readProcess(pid) !== undefined)).toBe(false);
    await leaveRecord(leaders.map((pid) => ({ pid, startTime: '5' })));
    await endThem();
    await ours.ended;
    expect([others, unknown].map(({ pid }) => isAlive(-pid))).toEqual([true, true]);
  });

  it('ends the processes of an owner that is a zombie', async () => {
    await using parent = await startScript(`(${whenReplaced}) & echo $!; exec sleep 600`);
    const owner = Number(parent.said);
    await expect.poll(() => readProcess(owner)?.isZombie).toBe(true);
    await using child = await startScript('echo ready; sleep 600');
    await leaveRecord([recorded(child.pid)], { owner: recorded(owner) });
    await endThem();
    await child.ended;
  });

  it('runs once if two Switchboards start at the same time', async () => {
    await using child = await startScript('echo ready; sleep 600');
    await leaveRecord([recorded(child.pid)]);
    await Promise.all([endThem(), endThem()]);
    await child.ended;
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('a process survives the cleanup', () => {
  it('if it only reuses a pid of ours', async () => {
    await using bystander = await startScript('echo ready; sleep 600', { SWITCHBOARD_INSTANCE: instance });
    await leaveRecord([{ pid: bystander.pid, startTime: '5' }]);
    await endThem();
    expect(bystander.isAlive()).toBe(true);
    expect(await readdir(folder)).toEqual([]);
    expect(reports).toEqual([]);
  });

  it('if its Switchboard is alive, and the record stays', async () => {
    await using owner = await startScript('echo ready; sleep 600');
    await using child = await startScript('echo ready; sleep 600');
    await leaveRecord([recorded(child.pid)], { owner: recorded(owner.pid) });
    await endThem();
    expect(child.isAlive()).toBe(true);
    expect(await readdir(folder)).toEqual([name]);
  });

  it('if it matches a record from before a reboot, which is removed', async () => {
    await using child = await startScript('echo ready; sleep 600');
    await leaveRecord([recorded(child.pid)], { boot: randomUUID() });
    await endThem();
    expect(child.isAlive()).toBe(true);
    expect(await readdir(folder)).toEqual([]);
  });

  it('if it matches a record from another container, which stays', async () => {
    await using child = await startScript('echo ready; sleep 600');
    await leaveRecord([recorded(child.pid)], { namespace: 'pid:[1]' });
    await endThem();
    expect(child.isAlive()).toBe(true);
    expect(await readdir(folder)).toEqual([name]);
  });
});

it('files that are not records stay untouched', async () => {
  const names = [name, '17-5.json', 'notes.txt'];
  await Promise.all(names.map((file) => writeFile(join(folder, file), '{"owner":')));
  await endThem();
  expect((await readdir(folder)).toSorted()).toEqual(names.toSorted());
  expect(reports).toEqual([]);
});

it('a missing folder has no leftovers', async () => {
  await endLeftovers(join(folder, 'none'), (message) => reports.push(message));
  expect(reports).toEqual([]);
});
