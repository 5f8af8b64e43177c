import type { RuleView } from '../../api/access-views.ts';
import { apiPath, callApi } from '../api.ts';
import type { ApiFlags } from '../options.ts';
import { oneLine, printList, printResult } from '../output.ts';
import { removeConfirmed } from '../prompt.ts';
import { subject } from '../subject.ts';
import { readWhat } from './what.ts';

interface RuleFlags extends ApiFlags {
  for: string;
  project?: string;
  readOnly?: boolean;
  notReadOnly?: boolean;
  destructive?: boolean;
  notDestructive?: boolean;
}

export async function listRules(flags: ApiFlags & { project?: string }): Promise<void> {
  const { rules } = await callApi<{ rules: RuleView[] }>(flags.url, 'GET', '/rules', {
    query: { project: flags.project },
  });
  printList('rules', rules, ruleRow, flags);
}

export async function addRule(effect: RuleView['effect'], what: string, flags: RuleFlags): Promise<void> {
  const body = {
    ...{ effect, ...readWhat(what), subject: subject(flags.for), project: flags.project },
    ...{ read_only: hint(flags.readOnly, flags.notReadOnly) },
    ...{ destructive: hint(flags.destructive, flags.notDestructive) },
  };
  const rule = await callApi<RuleView>(flags.url, 'POST', '/rules', { body });
  printResult(rule, `added rule ${rule.id}: ${ruleRow(rule).slice(1).join(' ')}`, flags);
}

export function removeRule(id: string, flags: ApiFlags & { yes?: boolean }): Promise<number> {
  return removeConfirmed(flags, `Remove the rule ${id}?`, apiPath('rules', id), 'rule', id);
}

function hint(yes: boolean | undefined, no: boolean | undefined): boolean | undefined {
  return yes ? true : no ? false : undefined;
}

export function ruleRow(rule: RuleView): string[] {
  const { id, effect, project, kind, server, name, read_only, destructive } = rule;
  const hints = [
    ...(read_only === null ? [] : [read_only ? 'read-only' : 'not read-only']),
    ...(destructive === null ? [] : [destructive ? 'destructive' : 'not destructive']),
  ];
  const place = project === null ? 'in all projects' : `in ${project.name}`;
  const what = `${kind === null ? '' : `${kind}:`}${server}/${name}`;
  return [id, effect, oneLine(what), `for ${subjectText(rule)}`, place, hints.join(', ')];
}

function subjectText({ subject }: RuleView): string {
  switch (subject.kind) {
    case 'everyone':
      return subject.kind;
    case 'role':
      return `role:${subject.role}`;
    case 'group':
      return `group:${subject.name}`;
    case 'principal':
      return subject.name;
  }
}
