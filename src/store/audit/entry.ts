import { createHash } from 'node:crypto';
import type { Selectable } from 'kysely';
import { isObject } from '../../json.ts';
import type { DB } from '../schema.ts';
import { storableJson } from '../text.ts';

export type AuditRow = Selectable<DB['audit_log']>;
export type EntryContent = Omit<AuditRow, 'previous' | 'hash'>;

const MAX_CONTENT_BYTES = 16 * 1024;
/** Smaller fields of something larger are kept. */
const MAX_FIELD_BYTES = 1024;
const MAX_DEPTH = 200;

/** Of an entry and all before it. */
export function hashOf(previous: Buffer, entry: EntryContent): Buffer {
  return createHash('sha256').update(previous).update(canonicalText(entry)).digest();
}

/** In the form in which the database returns it. What is too large is left out, field by field if that is enough. */
export function boundedContent(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  const whole = bounded(value, MAX_CONTENT_BYTES);
  if (whole === value || !isObject(value)) return storable(whole);
  const fields = Object.entries(value).map(([key, field]) => [key, bounded(field, MAX_FIELD_BYTES)]);
  return storable(bounded(Object.fromEntries(fields), MAX_CONTENT_BYTES));
}

function bounded(value: unknown, limit: number): unknown {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '');
  return bytes > limit || isDeep(value) ? { omitted: bytes } : value;
}

/** Without recursion, for which it may be too deep. */
function isDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return level.length > 0;
}

function storable(value: unknown): unknown {
  return JSON.parse(storableJson(JSON.stringify(value)));
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
