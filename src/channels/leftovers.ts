import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DEADLINES, endGroup } from './process-group.ts';
import {
  draftOf,
  INSTANCE_VARIABLE,
  isRecordName,
  parseRecord,
  type RecordContents,
} from './process-record.ts';
import { groupCarries, pidSpace, readProcess } from './process-table.ts';

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

function attempt<Value>(action: () => Value): Value | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
