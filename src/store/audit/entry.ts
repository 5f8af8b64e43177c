import { createHash } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { DB } from '../schema.ts';

export type AuditRow = Selectable<DB['audit_log']>;
export type EntryContent = Omit<AuditRow, 'previous' | 'hash'>;

/** Of an entry and all before it. */
export function hashOf(previous: Buffer, entry: EntryContent): Buffer {
  return createHash('sha256').update(previous).update(canonicalText(entry)).digest();
}

function canonicalText(entry: EntryContent): string {
  const { seq, at, actor_kind, actor_id, actor_name, address, action, project_id, project_name } = entry;
  const { subject, outcome, rule_id, count, before, after } = entry;
  return canonicalJson({
    ...{ seq, at: at.toISOString(), actor_kind, actor_id, actor_name, address, action },
    ...{ project_id, project_name, subject, outcome, rule_id, count, before, after },
  });
}

/** Without spaces, and with the keys of objects in order. */
function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join()}}`;
}
