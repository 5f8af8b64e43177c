import type { Role } from '../../src/identity/roles.ts';
import type { Hints, Item, Rule } from '../../src/identity/rules.ts';
import type { RoleFacts } from '../../src/identity/shared-permissions.ts';

/** What the rules of access say about one request, worked out slowly and in so many words. */
export interface Verdict {
  see: boolean;
  call: boolean;
  /** The rule that decides, if one does. */
  rule: string | undefined;
  /** Whether rules of both effects are about the item. */
  isContested: boolean;
}

const roles: Role[] = ['viewer', 'caller', 'operator', 'owner', 'admin'];

export function verdict(facts: RoleFacts, principal: string, project: string, item: Item): Verdict {
  const groups = facts.members.filter((row) => row.principal === principal).map((row) => row.group);
  const role = strongestRole(facts, [principal, ...groups], project);
  if (role === undefined) return { see: false, call: false, rule: undefined, isContested: false };
  const fitting = facts.rules.filter(
    (rule) => isFor(rule, principal, groups, role, project) && isAbout(rule, item),
  );
  const general = strongest(fitting.filter((rule) => rule.project === undefined));
  const own = strongest(fitting);
  const winner = own?.effect === 'allow' && general?.effect === 'deny' ? general : own;
  const see = winner?.effect !== 'deny';
  const isContested = new Set(fitting.map(({ effect }) => effect)).size > 1;
  return { see, call: see && role !== 'viewer', rule: winner?.id, isContested };
}

function strongest(rules: Rule[]): Rule | undefined {
  return rules.find((rule) => rules.every((other) => other === rule || !yieldsTo(rule, other)));
}

function strongestRole(facts: RoleFacts, holders: string[], project: string): Role | undefined {
  const held = facts.grants
    .filter((grant) => holders.includes(grant.holder.id))
    .filter((grant) => grant.project === undefined || grant.project === project)
    .map((grant) => grant.role);
  return roles.findLast((role) => held.includes(role));
}

function isFor(rule: Rule, principal: string, groups: string[], role: Role, project: string): boolean {
  if (rule.project !== undefined && rule.project !== project) return false;
  switch (rule.subject.kind) {
    case 'everyone':
      return true;
    case 'role':
      return rule.subject.role === role;
    case 'group':
      return groups.includes(rule.subject.id);
    case 'principal':
      return rule.subject.id === principal;
  }
}

function isAbout(rule: Rule, item: Item): boolean {
  if (rule.kind !== undefined && rule.kind !== item.kind) return false;
  const hintSets =
    item.kind === 'tool' ? (item.hints.length === 0 ? [{}] : item.hints) : [{ readOnlyHint: true }];
  const hintFits = (hints: Hints): boolean => {
    const readOnly = hints.readOnlyHint === true;
    const destructive = readOnly ? hints.destructiveHint === true : hints.destructiveHint !== false;
    if (rule.readOnly !== undefined && rule.readOnly !== readOnly) return false;
    return rule.destructive === undefined || rule.destructive === destructive;
  };
  if (rule.effect === 'deny') {
    // One server, one annotation and one way to write the name are enough.
    const isServer = item.servers.some((server) => glob(rule.server, 'i').test(server));
    const isName =
      glob(rule.name, 'i').test(item.name) ||
      (item.kind === 'resource' && glob(rule.name, 'i').test(`${item.name}/`));
    return isServer && isName && hintSets.some(hintFits);
  }
  const [group, ...members] = item.servers;
  const isServer =
    glob(rule.server, '').test(group!) ||
    (members.length > 0 && members.every((member) => glob(rule.server, '').test(member)));
  return isServer && glob(rule.name, '').test(item.name) && hintSets.every(hintFits);
}

function glob(pattern: string, flags: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[^A-Za-z0-9_]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, `s${flags}`);
}

/** Whether the other rule is more specific, or as specific and a denial. */
function yieldsTo(rule: Rule, other: Rule): boolean {
  for (const criterion of criteria) {
    const [mine, others] = [criterion(rule), criterion(other)];
    if (mine !== others) return others > mine;
  }
  return rule.effect === 'allow' && other.effect === 'deny';
}

/** The first that tells two rules apart decides which is more specific. */
const criteria: ((rule: Rule) => number)[] = [
  ({ subject }) => ['everyone', 'role', 'group', 'principal'].indexOf(subject.kind),
  ({ name }) => specificityOf(name),
  ({ server }) => specificityOf(server),
  ({ readOnly, destructive }) => [readOnly, destructive].filter((hint) => hint !== undefined).length,
  ({ kind }) => (kind === undefined ? 0 : 1),
  ({ project }) => (project === undefined ? 0 : 1),
];

function specificityOf(pattern: string): number {
  return pattern.includes('*') ? pattern.split('*').join('').length : Number.POSITIVE_INFINITY;
}
