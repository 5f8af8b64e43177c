import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startScript } from '../../test/helpers/processes.ts';
import { isRecordName, ProcessRecord, parseRecord } from './process-record.ts';
import { readProcess } from './process-table.ts';

let home: string;
let folder: string;
const warnings: string[] = [];
const warn = (message: string) => warnings.push(message);

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  folder = join(home, 'run');
  warnings.length = 0;
});
afterEach(() => rm(home, { recursive: true }));

async function readRecord() {
  const names = await readdir(folder);
  expect(names.filter(isRecordName)).toEqual(names);
  expect(names).toHaveLength(1);
  return parseRecord(await readFile(join(folder, names[0]!), 'utf8'))!;
}

describe('the process record', () => {
  it('names its owner and the running groups', async () => {
    await using child = await startScript('echo ready; sleep 600');
    const record = ProcessRecord.open(folder, warn);
    expect(await readRecord()).toMatchObject({ owner: { pid: process.pid }, groups: [] });
    record.started(child.pid);
    const contents = await readRecord();
    expect(contents.groups).toEqual([{ pid: child.pid, startTime: readProcess(child.pid)!.startTime }]);
    expect(contents.owner.startTime).toBe(readProcess(process.pid)!.startTime);
    expect(record.environment).toEqual({ SWITCHBOARD_INSTANCE: contents.instance });
    expect(warnings).toEqual([]);
  });

  it('is readable by its user only', async () => {
    ProcessRecord.open(folder, warn);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    const [name] = await readdir(folder);
    expect((await stat(join(folder, name!))).mode & 0o777).toBe(0o600);
  });

  it('stays small, however many processes come and go', async () => {
    const record = ProcessRecord.open(folder, warn);
    for (let count = 0; count < 200; count++) {
      record.started(process.pid);
      record.ended(process.pid);
    }
    record.started(process.ppid);
    expect((await readRecord()).groups.map(({ pid }) => pid)).toEqual([process.ppid]);
  });

  it('is restored after it was removed', async () => {
    const record = ProcessRecord.open(folder, warn);
    await rm(folder, { recursive: true });
    record.started(process.pid);
    expect((await readRecord()).groups).toHaveLength(1);
  });

  it('is removed on stop, with the last group', async () => {
    const record = ProcessRecord.open(folder, warn);
    record.started(process.pid);
    record.close();
    expect((await readRecord()).groups).toHaveLength(1);
    record.ended(process.pid);
    expect(await readdir(folder)).toEqual([]);
  });

  it('kills all remaining groups, and no other', async () => {
    await using stubborn = await startScript("trap '' TERM; (sleep 600) & echo ready; sleep 600");
    await using ended = await startScript('echo ready; sleep 600');
    const record = ProcessRecord.open(folder, warn);
    record.started(stubborn.pid);
    record.started(ended.pid);
    record.ended(ended.pid);
    record.killAll();
    await stubborn.ended;
    expect(ended.isAlive()).toBe(true);
    expect(await readdir(folder)).toEqual([]);
  });

  it('is skipped after one warning if the folder is not writable', async () => {
    const file = join(home, 'file');
    await writeFile(file, '');
    const record = ProcessRecord.open(join(file, 'run'), warn);
    record.started(process.pid);
    record.ended(process.pid);
    record.close();
    expect(warnings).toEqual([expect.stringMatching(/^Cannot record the processes of servers: ENOTDIR/)]);
  });
});

describe('a text', () => {
  const valid = {
    instance: '0b0f6d0e-5a51-4e3c-9d0a-0f3a2c1b4d5e',
    boot: '',
    namespace: '',
    owner: { pid: 1, startTime: '5' },
    groups: [{ pid: 2, startTime: '6' }],
  };

  it('is a record if it is complete', () => {
    expect(parseRecord(JSON.stringify(valid))).toEqual(valid);
  });

  // Signals to -1 reach every process, to 0 our own group, and to a negative "group" a single process.
  it.each([1, 0, -1, -20, 2.5, '20', null])('is not a record if it names the group %j', (pid) => {
    expect(parseRecord(JSON.stringify({ ...valid, groups: [{ pid, startTime: '6' }] }))).toBe(undefined);
  });

  it.each(['', '{', 'null', '[]', '{}', JSON.stringify(valid).slice(0, -1)])(
    'is not a record if it is %j',
    (text) => {
      expect(parseRecord(text)).toBe(undefined);
    },
  );
});
