import type { Selectable } from 'kysely';
import type { Rule, Subject } from '../../identity/rules.ts';
import type { Changes, Database, Queries } from '../database.ts';
import type { DB } from '../schema.ts';
import { noSuch, projectOf, requireGroup, requirePrincipal, shortId } from './rows.ts';

export interface StoredRule extends Rule {
  createdAt: Date;
}

/** In the order of their creation. */
export function listRules(database: Database): Promise<StoredRule[]> {
  return database.run(readRules);
}

export async function readRules(queries: Queries): Promise<StoredRule[]> {
  const rows = await queries.selectFrom('rules').selectAll().orderBy('created_at').orderBy('id').execute();
  return rows.map(ruleOf);
}

export function createRule(database: Database, input: Omit<Rule, 'id'>): Promise<StoredRule> {
  return database.write(async (changes, audit) => {
    const project = await projectOf(changes, input.project);
    const row = await changes
      .insertInto('rules')
      .values({
        ...{ id: shortId('r'), effect: input.effect, project_id: input.project ?? null },
        ...(await subjectColumns(changes, input.subject)),
        ...{ item_kind: input.kind ?? null, server: input.server, name: input.name },
        ...{ read_only: input.readOnly ?? null, destructive: input.destructive ?? null },
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    const rule = ruleOf(row);
    audit({ action: 'rule.create', project, subject: rule.id, after: shown(rule) });
    return rule;
  });
}

export function removeRule(database: Database, id: string): Promise<void> {
  return database.write(async (changes, audit) => {
    const row = await changes.deleteFrom('rules').where('id', '=', id).returningAll().executeTakeFirst();
    if (row === undefined) throw noSuch('rule', id);
    const project = await projectOf(changes, row.project_id);
    audit({ action: 'rule.remove', project, subject: id, before: shown(ruleOf(row)) });
  });
}

async function subjectColumns(changes: Changes, subject: Subject) {
  if (subject.kind === 'group') await requireGroup(changes, subject.id);
  if (subject.kind === 'principal') await requirePrincipal(changes, subject.id);
  return {
    subject_kind: subject.kind,
    subject_role: subject.kind === 'role' ? subject.role : null,
    subject_group: subject.kind === 'group' ? subject.id : null,
    subject_principal: subject.kind === 'principal' ? subject.id : null,
  };
}

export function ruleOf(row: Selectable<DB['rules']>): StoredRule {
  return {
    ...{ id: row.id, effect: row.effect, project: row.project_id ?? undefined, subject: subjectOf(row) },
    ...{ kind: row.item_kind ?? undefined, server: row.server, name: row.name },
    ...{ readOnly: row.read_only ?? undefined, destructive: row.destructive ?? undefined },
    createdAt: row.created_at,
  };
}

/** The table's constraints keep the columns in agreement with the kind. */
function subjectOf(row: Selectable<DB['rules']>): Subject {
  switch (row.subject_kind) {
    case 'everyone':
      return { kind: 'everyone' };
    case 'role':
      return { kind: 'role', role: row.subject_role! };
    case 'group':
      return { kind: 'group', id: row.subject_group! };
    case 'principal':
      return { kind: 'principal', id: row.subject_principal! };
  }
}

/** For the audit log. */
function shown({ createdAt: _, project: __, ...rule }: StoredRule): object {
  return rule;
}
