import type { AuditEntry } from '../../api/access-views.ts';
import { localTime, oneLine } from '../output.ts';

export function auditRow(entry: AuditEntry): string[] {
  const { at, actor, address, action, project, subject, outcome, rule, count } = entry;
  const details = [
    ...(rule === null ? [] : [`rule ${rule}`]),
    ...(count === 1 ? [] : [`${count} times`]),
    ...(address === null ? [] : [`from ${address}`]),
  ];
  return [
    localTime(at),
    oneLine(actor.name),
    outcome,
    action,
    project?.name ?? '',
    oneLine(subject ?? ''),
    details.join(', '),
  ];
}
