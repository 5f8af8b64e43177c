import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { DEADLINES, endGroup, signalGroup } from './process-group.ts';
import {
  attempt,
  groupCarries,
  type PidSpace,
  type ProcessFacts,
  pidSpace,
  readProcess,
} from './process-table.ts';
import type { ChildRecord } from './stdio.ts';

/** Every child has this variable, with the id of the Switchboard that started it. */
const INSTANCE_VARIABLE = 'SWITCHBOARD_INSTANCE';

// Group 1 would mean all processes, group 0 our own.
const processSchema = z.object({ pid: z.int().min(2), startTime: z.string().min(1) });
const contentsSchema = z.object({
  instance: z.uuid(),
  boot: z.string(),
  namespace: z.string(),
  owner: z.object({ ...processSchema.shape, pid: z.int().min(1) }),
  /** The leaders of the groups. */
  groups: z.array(processSchema),
});

export type RecordContents = z.infer<typeof contentsSchema>;

export function parseRecord(text: string): RecordContents | undefined {
  try {
    return contentsSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export function isRecordName(name: string): boolean {
  return /^\d+-[\w-]+\.json$/.test(name);
}

/** A record is written here and then renamed, so that it is always complete. */
function draftOf(path: string): string {
  return `${path}.new`;
}

/** Records the processes that we run in a file, so that the next Switchboard can end them if we are killed. */
export class ProcessRecord implements ChildRecord {
  readonly environment: Record<string, string>;
  inheritsNetwork = true;
  private readonly path: string;
  private readonly warn: (message: string) => void;
  private readonly instance = randomUUID();
  private readonly space: PidSpace = pidSpace();
  private readonly owner: { pid: number; startTime: string };
  /** By the pid of the leader. */
  private readonly groups = new Map<number, ProcessFacts | undefined>();
  private lastTurn: Promise<void> = Promise.resolve();
  private hasWarned = false;
  private isClosed = false;

  private constructor(folder: string, warn: (message: string) => void) {
    const startTime = readProcess(process.pid)?.startTime ?? '';
    this.owner = { pid: process.pid, startTime };
    this.path = join(folder, `${process.pid}-${startTime.replaceAll(/\W+/g, '-')}.json`);
    this.warn = warn;
    this.environment = { [INSTANCE_VARIABLE]: this.instance };
  }

  static open(folder: string, warn: (message: string) => void): ProcessRecord {
    const record = new ProcessRecord(folder, warn);
    record.write();
    return record;
  }

  /** Starting a process blocks the event loop for tens of milliseconds. */
  turn(): Promise<void> {
    const mine = this.lastTurn;
    this.lastTurn = mine.then(() => nextTurn());
    return mine;
  }

  started(pid: number): void {
    this.groups.set(pid, readProcess(pid));
    this.write();
  }

  /** The file is updated with the next start: until then, the old entry matches no process. */
  ended(pid: number): void {
    this.groups.delete(pid);
    if (this.isClosed) this.removeIfEmpty();
  }

  /** Removes the file as soon as the last group is gone. */
  close(): void {
    this.isClosed = true;
    this.removeIfEmpty();
  }

  killAll(): void {
    for (const group of this.groups.keys()) signalGroup(group, 'SIGKILL');
    this.groups.clear();
    this.close();
  }

  private removeIfEmpty(): void {
    if (this.groups.size > 0) return;
    try {
      rmSync(this.path, { force: true });
    } catch {
      // It names no running process; the next start removes it.
    }
  }

  /** Always writes the whole file, in case it was removed. */
  private write(): void {
    const contents: RecordContents = {
      instance: this.instance,
      ...this.space,
      owner: this.owner,
      groups: [...this.groups].flatMap(([pid, facts]) =>
        facts === undefined ? [] : [{ pid, startTime: facts.startTime }],
      ),
    };
    try {
      mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
      writeFileSync(draftOf(this.path), JSON.stringify(contents), { mode: 0o600 });
      renameSync(draftOf(this.path), this.path);
    } catch (error) {
      if (this.hasWarned) return;
      this.hasWarned = true;
      this.warn(
        `Cannot record the processes of servers: ${(error as Error).message}. If Switchboard is killed, the next start will not stop them.`,
      );
    }
  }
}

type RecordedProcess = RecordContents['owner'];

/** Ends and reports the processes of each Switchboard that was killed before it could stop them. */
export async function endLeftovers(folder: string, report: (message: string) => void): Promise<void> {
  const names = attempt(() => readdirSync(folder)) ?? [];
  await Promise.all(names.filter(isRecordName).map((name) => settle(join(folder, name), report)));
}

async function settle(path: string, report: (message: string) => void): Promise<void> {
  const record = parseRecord(attempt(() => readFileSync(path, 'utf8')) ?? '');
  if (record === undefined) return;
  const space = pidSpace();
  if (record.boot === space.boot) {
    // An owner in another container cannot be looked up by its pid.
    if (record.namespace !== space.namespace || isAlive(record.owner)) return;
    await endGroupsOf(record, report);
  }
  for (const file of [path, draftOf(path)]) attempt(() => rmSync(file, { force: true }));
}

async function endGroupsOf(
  { owner, groups, instance }: RecordContents,
  report: (message: string) => void,
): Promise<void> {
  const ours = groups.filter((leader) => isOurs(leader, instance)).map(({ pid }) => pid);
  if (ours.length === 0) return;
  await Promise.all(ours.map((group) => endGroup(group, DEADLINES.killAfterMs)));
  report(
    `A previous Switchboard (process ${owner.pid}) was killed before it could stop its servers. They are stopped now: process ${ours.join(', ')}.`,
  );
}

function isAlive({ pid, startTime }: RecordedProcess): boolean {
  const facts = readProcess(pid);
  return facts !== undefined && facts.startTime === startTime && !facts.isZombie;
}

/**
 * A pid is not reused while its group has members, so another start time means that the group is gone. If only the leader is
 * gone, the rest of the group must carry our variable.
 */
function isOurs({ pid, startTime }: RecordedProcess, instance: string): boolean {
  const leader = readProcess(pid);
  if (leader !== undefined && leader.startTime !== startTime) return false;
  if (leader !== undefined && !leader.isZombie) return true;
  return groupCarries(pid, INSTANCE_VARIABLE, instance);
}
