import type { RuleView } from '../../api/access-views.ts';
import { apiPath, callApi } from '../api.ts';
import type { ApiFlags } from '../options.ts';
import { oneLine, printList, printResult } from '../output.ts';
import { removeConfirmed } from '../prompt.ts';
import { orGroup, subject } from '../subject.ts';
import { readWhat, whatText } from './what.ts';

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
  const rule = await orGroup(flags.for, () => callApi<RuleView>(flags.url, 'POST', '/rules', { body }));
  printResult(rule, `added rule ${rule.id}: ${ruleText(rule)}`, flags);
}

export function removeRule(id: string, flags: ApiFlags & { yes?: boolean }): Promise<number> {
  return removeConfirmed(flags, `Remove the rule ${id}?`, apiPath('rules', id), 'rule', id);
}

function hint(yes: boolean | undefined, no: boolean | undefined): boolean | undefined {
  return yes ? true : no ? false : undefined;
}

/** The subject comes before what may be cut off, such as a long URI. */
function ruleRow(rule: RuleView): string[] {
  const { id, effect } = rule;
  return [id, effect, `for ${subjectText(rule)}`, oneLine(whatText(rule)), placeText(rule), hintsText(rule)];
}

function ruleText(rule: RuleView): string {
  const parts = [rule.effect, oneLine(whatText(rule)), `for ${subjectText(rule)}`, placeText(rule)];
  return [...parts, hintsText(rule)].filter((part) => part !== '').join(' ');
}

function hintsText({ read_only, destructive }: RuleView): string {
  const hints = [
    ...(read_only === null ? [] : [read_only ? 'read-only' : 'not read-only']),
    ...(destructive === null ? [] : [destructive ? 'destructive' : 'not destructive']),
  ];
  return hints.join(', ');
}

function placeText({ project }: RuleView): string {
  return project === null ? 'in all projects' : `in ${project.name}`;
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
