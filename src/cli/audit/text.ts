import type { AuditEntry } from '../../api/access-views.ts';
import type { ItemKind } from '../../identity/rules.ts';
import { counted, localTime, oneLine } from '../output.ts';
import { whatText } from '../rule/what.ts';

/** Where the year and the seconds would take the place of the subject. */
const NARROW = 120;

export function auditRow(entry: AuditEntry): string[] {
  const { at, actor, address, action, project, outcome, rule, count } = entry;
  const details = [
    ...(rule === null ? [] : [`rule ${rule}`]),
    ...(count === 1 ? [] : [`${count} times`]),
    ...(address === null ? [] : [`from ${address}`]),
  ];
  return [
    timeText(at),
    oneLine(actor.name),
    outcome,
    action,
    project?.name ?? '',
    oneLine(subjectText(entry)),
    details.join(', '),
  ];
}

function timeText(at: string): string {
  const { isTTY, columns } = process.stdout;
  return isTTY && columns < NARROW ? localTime(at).slice(5, -3) : localTime(at);
}

function subjectText(entry: AuditEntry): string {
  const { subject, outcome, project } = entry;
  if (subject === null || subject === '') {
    if (outcome !== 'denied') return '';
    return project === null ? 'in all projects' : `the project ${project.name}`;
  }
  const change = changeText(entry);
  return change === '' ? subject : `${subject}: ${change}`;
}

/** The columns that say what an entry of the access is about. Any of them may be missing in older entries. */
interface Row {
  role?: string;
  effect?: string;
  subject?: { kind?: string; role?: string };
  kind?: ItemKind | null;
  server?: string;
  name?: string;
  perMinute?: number;
  concurrent?: number;
  tool?: string;
  principal?: string;
  isShared?: boolean;
}

function changeText({ action, before, after }: AuditEntry): string {
  const row = (after ?? before ?? {}) as Row;
  if (action.startsWith('role.')) return row.role === undefined ? '' : `role ${row.role}`;
  if (action.startsWith('rule.')) return ruleText(row);
  return action.startsWith('limit.') ? limitText(row) : '';
}

function ruleText({ effect = '', subject = {}, kind = null, server, name }: Row): string {
  if (server === undefined || name === undefined) return effect;
  return `${effect} ${whatText({ kind, server, name })} for ${whomText(subject)}`;
}

function whomText({ kind, role }: NonNullable<Row['subject']>): string {
  if (kind === 'role') return `role:${role}`;
  if (kind === 'group') return 'a group';
  return kind === 'principal' ? 'a key' : 'everyone';
}

function limitText({ perMinute, concurrent, server, tool, principal, isShared }: Row): string {
  return [
    ...(perMinute === undefined ? [] : [`${perMinute} per minute`]),
    ...(concurrent === undefined ? [] : [`${counted(concurrent, 'call')} at a time`]),
    `for ${principal === undefined ? (isShared ? 'all together' : 'each') : 'a key'}`,
    ...(server === undefined && tool === undefined ? [] : [`calls of ${server ?? '*'}/${tool ?? '*'}`]),
  ].join(', ');
}
