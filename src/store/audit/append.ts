import { sql } from 'kysely';
import { maskKeys } from '../../identity/keys.ts';
import type { Changes } from '../connections.ts';
import { storableName, storableText } from '../text.ts';
import { boundedContent } from './content.ts';
import { type AuditRow, type EntryContent, hashOf } from './entry.ts';

/** Who changes something, or tried to. */
export interface Actor {
  kind: AuditRow['actor_kind'];
  id: string;
  name: string;
  address: string | undefined;
}

/** Switchboard itself. */
export const system: Actor = { kind: 'system', id: 'system', name: 'Switchboard', address: undefined };

/** Credentials in `before` and `after` must be masked, and hashes and ciphertexts left out. What is recognized here is masked too. */
export interface AuditedChange {
  action: string;
  project?: { readonly id: string; readonly name: string } | undefined;
  subject?: string | undefined;
  before?: unknown;
  after?: unknown;
}

export interface NewAuditEntry extends AuditedChange {
  actor: Actor;
  /** Done by default. */
  outcome?: AuditRow['outcome'] | undefined;
  /** The rule that denied it. */
  ruleId?: string | undefined;
  /** How often it happened; once by default. */
  count?: number | undefined;
}

/** Rows per statement, which has a limited number of parameters. */
const BATCH = 1_000;

/** Must be the last statements of a transaction, so that the others do not wait for more than these. */
export async function appendEntries(changes: Changes, entries: readonly NewAuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  // Before the lock, because it takes a while for large ones.
  const bounded = entries.map((entry) => ({
    ...entry,
    ...{ before: boundedContent(entry.before), after: boundedContent(entry.after) },
  }));
  const head = await changes
    .selectFrom('audit_head')
    .select(['seq', 'hash', sql<Date>`clock_timestamp()::timestamptz(3)`.as('now')])
    .forUpdate()
    .executeTakeFirstOrThrow();
  let { seq, hash } = head;
  const rows = bounded.map((entry): AuditRow => {
    const content = contentOf(entry, ++seq, head.now);
    const previous = hash;
    hash = hashOf(previous, content);
    return { ...content, previous, hash };
  });
  for (let start = 0; start < rows.length; start += BATCH) {
    await changes
      .insertInto('audit_log')
      .values(rows.slice(start, start + BATCH).map(columnsOf))
      .execute();
  }
  await changes.updateTable('audit_head').set({ seq, hash }).execute();
}

/** `before` and `after` are bounded. */
function contentOf(entry: NewAuditEntry, seq: number, at: Date): EntryContent {
  const { actor, action, project, subject, outcome = 'done', ruleId, count = 1 } = entry;
  return {
    ...{ seq, at, action, outcome, count },
    actor_kind: actor.kind,
    actor_id: storableText(actor.id),
    actor_name: nameOf(actor.name),
    address: actor.address === undefined ? null : storableText(actor.address),
    project_id: project?.id ?? null,
    project_name: project === undefined ? null : nameOf(project.name),
    subject: subject === undefined ? null : nameOf(subject),
    rule_id: ruleId ?? null,
    before: entry.before as AuditRow['before'],
    after: entry.after as AuditRow['after'],
  };
}

/** Somebody may have put a key where a name belongs. */
function nameOf(text: string): string {
  return storableText(storableName(maskKeys(text)));
}

function columnsOf({ before, after, ...row }: AuditRow) {
  // As text, because `pg` sends arrays in another format.
  const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
  return { ...row, before: json(before), after: json(after) };
}
