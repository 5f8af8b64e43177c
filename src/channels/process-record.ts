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

/** Every child has this variable, with the instance of the Switchboard that started it as its value. */
const INSTANCE_VARIABLE = 'SWITCHBOARD_INSTANCE';

// A signal to group 1 would go to every process there is, one to group 0 to ourselves.
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

/** What a record file says; undefined where it is none. */
export function parseRecord(text: string): RecordContents | undefined {
  try {
    return contentsSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function isRecordName(name: string): boolean {
  return /^\d+-[\w-]+\.json$/.test(name);
}

/** A record is written beside its place and moved there, so that whenever we are killed, there is a whole one. */
function draftOf(path: string): string {
  return `${path}.new`;
}

/**
 * The processes that this Switchboard runs, kept in a file: if it is killed, the next one ends them. Where the file
 * cannot be written, it works without.
 */
export class ProcessRecord implements ChildRecord {
  readonly environment: Record<string, string>;
  inheritsNetwork = true;
  private readonly path: string;
  private readonly warn: (message: string) => void;
  private readonly instance = randomUUID();
  private readonly space: PidSpace = pidSpace();
  private readonly owner: { pid: number; startTime: string };
  /** By their leaders. */
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

  /** A start takes tens of milliseconds, and nobody else gets a turn meanwhile. */
  turn(): Promise<void> {
    const mine = this.lastTurn;
    this.lastTurn = mine.then(() => nextTurn());
    return mine;
  }

  /** A child that leads its own process group was started. */
  started(pid: number): void {
    this.groups.set(pid, readProcess(pid));
    this.write();
  }

  /** The group of that child is gone. The file says so with the next start: until then, a group of that time is not found. */
  ended(pid: number): void {
    this.groups.delete(pid);
    if (this.isClosed) this.removeIfEmpty();
  }

  /** Everything was told to end. The file goes with the last group. */
  close(): void {
    this.isClosed = true;
    this.removeIfEmpty();
  }

  /** Ends every group at once, without a chance to clean up behind it. */
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
      // It names nobody who is alive: the next start takes it away.
    }
  }

  /** All of it each time: it stays small, and comes back where somebody removed it. */
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
        `The processes of servers cannot be recorded: ${(error as Error).message}. If Switchboard is killed, the next start does not end them.`,
      );
    }
  }
}

type RecordedProcess = RecordContents['owner'];

/** Ends the processes of every Switchboard that was killed before it could do so itself, and tells which. */
export async function endLeftovers(folder: string, report: (message: string) => void): Promise<void> {
  const names = attempt(() => readdirSync(folder)) ?? [];
  await Promise.all(names.filter(isRecordName).map((name) => settle(join(folder, name), report)));
}

async function settle(path: string, report: (message: string) => void): Promise<void> {
  const record = parseRecord(attempt(() => readFileSync(path, 'utf8')) ?? '');
  if (record === undefined) return;
  const space = pidSpace();
  if (record.boot === space.boot) {
    // The owner may live in another container, where its pid cannot be looked up.
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
    `A Switchboard before this one (process ${owner.pid}) was ended before it could stop its servers. They are stopped now: process ${ours.join(', ')}.`,
  );
}

function isAlive({ pid, startTime }: RecordedProcess): boolean {
  const facts = readProcess(pid);
  return facts !== undefined && facts.startTime === startTime && !facts.isZombie;
}

/**
 * A pid that another process has now means that the group is gone: as long as a group has members, nobody gets its
 * number. Where the leader is gone, what is left of its group must prove where it comes from.
 */
function isOurs({ pid, startTime }: RecordedProcess, instance: string): boolean {
  const leader = readProcess(pid);
  if (leader !== undefined && leader.startTime !== startTime) return false;
  if (leader !== undefined && !leader.isZombie) return true;
  return groupCarries(pid, INSTANCE_VARIABLE, instance);
}
