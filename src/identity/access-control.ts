import { SwitchboardError } from '../errors.ts';
import type { Sender } from './principal.ts';
import { type Action, actions } from './roles.ts';
import { type Item, type Rule, ruleText } from './rules.ts';

interface NamedProject {
  readonly id: string;
  readonly name: string;
}

/** A request that was refused, for the audit log. */
export interface Denial {
  sender: Sender;
  action: Action;
  project: NamedProject | undefined;
  /** What the request was about, such as a tool of a server. */
  subject: string | undefined;
  rule: Rule | undefined;
}

/** The one decision about every request: lists, calls, and the API. Reports each denial. */
export class AccessControl {
  private readonly report: (denial: Denial) => void;

  constructor(report: (denial: Denial) => void) {
    this.report = report;
  }

  /** Throws unless the role suffices. Without a project, in all projects. A project in which it has no role does not exist for it. */
  authorize(sender: Sender, action: Action, project: NamedProject | undefined, subject?: string): void {
    const { permissions } = sender.principal;
    if (permissions.may(action, project?.id)) return;
    this.report({ sender, action, project, subject, rule: undefined });
    if (project !== undefined && !permissions.may('see', project.id)) throw unknownProject(project.name);
    throw lacksRole(sender, action, project);
  }

  /** Reports a request for a project that must look as if it did not exist. */
  reportHidden(sender: Sender, project: NamedProject): void {
    this.report({ sender, action: 'see', project, subject: undefined, rule: undefined });
  }

  /** Reports a request about what belongs to another principal, such as its session, and must look as if it did not exist. */
  reportForeign(sender: Sender, subject: string): void {
    this.report({ sender, action: 'see', project: undefined, subject, rule: undefined });
  }

  /** Throws unless the role and the rules allow the use of the item. `unknown` is the error if it must look as if it did not exist. */
  authorizeItem(sender: Sender, project: NamedProject, item: Item, unknown: () => SwitchboardError): void {
    const { permissions } = sender.principal;
    const decision = permissions.decide('call', project.id, item);
    if (decision.isAllowed) return;
    const { rule, role } = decision;
    this.report({ sender, action: 'call', project, subject: subjectOf(item), rule });
    if (role === undefined) throw unknown();
    if (rule === undefined) throw lacksRole(sender, 'call', project);
    throw permissions.mayKnowOf(project.id) ? denied(rule, item) : unknown();
  }
}

function subjectOf({ kind, servers: [server], name }: Item): string {
  return `${kind} ${name} of ${server}`;
}

function denied(rule: Rule, { kind, name }: Item): SwitchboardError {
  return new SwitchboardError(
    'forbidden',
    `The ${kind} ${name} is denied by the rule "${ruleText(rule)}" (${rule.id}).`,
    { data: { rule: rule.id } },
  );
}

export function unknownProject(name: string): SwitchboardError {
  return new SwitchboardError('unknown_project', `There is no project ${JSON.stringify(name)}.`, {
    data: { project: name },
  });
}

function lacksRole(
  { principal: { name, permissions } }: Sender,
  action: Action,
  project: NamedProject | undefined,
): SwitchboardError {
  const { role: needed } = actions[action];
  const role = permissions.roleIn(project?.id) ?? 'none';
  const where = project === undefined ? 'for all projects' : `in project "${project.name}"`;
  const granter = needed === 'admin' || project === undefined ? 'An administrator' : 'An owner';
  const place = project === undefined ? '' : ` -P ${word(project.name)}`;
  return new SwitchboardError(
    'forbidden',
    `This needs the role ${needed} ${where}; you have ${role === 'none' ? 'no role there' : `the role ${role}`}. ${granter} can grant it with: switchboard role grant ${needed} ${word(name)}${place}`,
    { data: { action, needed, role } },
  );
}

/** As one word of a command line. */
function word(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
