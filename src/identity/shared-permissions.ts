import { type Grants, Permissions } from './permissions.ts';
import { higher, type Role, rank } from './roles.ts';
import type { Rule } from './rules.ts';

export interface Grant {
  holder: { kind: 'principal' | 'group'; id: string };
  /** Undefined for all projects. */
  project: string | undefined;
  role: Role;
}

/** What roles and rules principals have. */
export interface RoleFacts {
  members: readonly { group: string; principal: string }[];
  grants: readonly Grant[];
  rules: readonly Rule[];
}

/** A rule, and a number for exactly what it says. */
interface NumberedRule {
  readonly rule: Rule;
  readonly number: number;
}

/** What somebody holds itself: a principal or a group. */
class Holder {
  readonly grants: Grant[] = [];
  readonly rules: NumberedRule[] = [];
  readonly groups: Holder[] = [];
  private text: string | undefined;

  /** The same for equal grants and rules, mostly. Ids have neither commas nor line breaks. */
  get facts(): string {
    this.text ??= [
      ...this.grants.map(({ project = '', role }) => `${role} ${project}`),
      ...this.rules.map(({ number }) => number),
    ].join();
    return this.text;
  }
}

/** Makes one object for equal permissions, and keeps it while they stay the same: whatever is built for it is kept, too. */
export class SharedPermissions {
  private inUse = new Map<string, Permissions>();
  private rules = new Map<string, NumberedRule>();
  private lastNumber = 0;

  /** The permissions of each principal, by these facts. */
  by(facts: RoleFacts): (principal: string) => Permissions {
    const { holders, general } = this.holdersIn(facts);
    const nobody = new Holder();
    const before = this.inUse;
    this.inUse = new Map();
    // Most principals hold what another one does, and need no comparison of roles and rules.
    const byFacts = new Map<string, Permissions>();
    return (id) => {
      const self = holders.get(id) ?? nobody;
      let key = self.facts;
      for (const group of self.groups) if (group.facts !== '') key += `\n${group.facts}`;
      let permissions = byFacts.get(key);
      if (permissions === undefined) {
        permissions = this.shared([self, ...self.groups], general, before);
        byFacts.set(key, permissions);
      }
      return permissions;
    };
  }

  private holdersIn({ members, grants, rules }: RoleFacts) {
    const holders = new Map<string, Holder>();
    const holder = (id: string): Holder => {
      let found = holders.get(id);
      if (found === undefined) {
        found = new Holder();
        holders.set(id, found);
      }
      return found;
    };
    const general: NumberedRule[] = [];
    for (const grant of grants) holder(grant.holder.id).grants.push(grant);
    for (const numbered of this.numbered(rules)) {
      const { subject } = numbered.rule;
      if ('id' in subject) holder(subject.id).rules.push(numbered);
      else general.push(numbered);
    }
    for (const { group, principal } of members) holder(principal).groups.push(holder(group));
    return { holders, general };
  }

  private shared(
    holders: readonly Holder[],
    general: readonly NumberedRule[],
    before: ReadonlyMap<string, Permissions>,
  ): Permissions {
    const grants = grantsFrom(holders.flatMap((holder) => holder.grants));
    const applicable = [...general, ...holders.flatMap((holder) => holder.rules)]
      .filter(({ rule }) => mayApply(rule, grants))
      .toSorted((one, other) => one.number - other.number);
    const key = [textOf(grants), ...applicable.map(({ number }) => number)].join('\n');
    const known = this.inUse.get(key) ?? before.get(key);
    const rules = applicable.map(({ rule }) => rule);
    const permissions = known ?? new Permissions(grants, rules);
    this.inUse.set(key, permissions);
    return permissions;
  }

  private numbered(rules: readonly Rule[]): NumberedRule[] {
    const before = this.rules;
    this.rules = new Map();
    return rules.map((rule) => {
      const text = JSON.stringify(rule);
      const same = before.get(text) ?? { rule, number: ++this.lastNumber };
      this.rules.set(text, same);
      return same;
    });
  }
}

/** Without roles that add nothing to the one everywhere. */
function grantsFrom(held: readonly Grant[]): Grants {
  const byProject = new Map<string, Role>();
  let everywhere: Role | undefined;
  for (const { project, role } of held) if (project === undefined) everywhere = higher(role, everywhere);
  for (const { project, role } of held) {
    const adds = rank(role) > rank(everywhere);
    if (project !== undefined && adds) byProject.set(project, higher(role, byProject.get(project))!);
  }
  return { everywhere, byProject };
}

function textOf({ everywhere, byProject }: Grants): string {
  const sorted = [...byProject].map(([project, role]) => `${project} ${role}`).toSorted();
  return [everywhere ?? 'none', ...sorted].join(',');
}

/** Whether the rule can decide in some project. */
function mayApply({ project, subject }: Rule, { everywhere, byProject }: Grants): boolean {
  const needed = subject.kind === 'role' ? subject.role : undefined;
  const applies = (role: Role | undefined) => role !== undefined && (needed === undefined || role === needed);
  if (project !== undefined) return applies(byProject.get(project) ?? everywhere);
  return applies(everywhere) || [...byProject.values()].some(applies);
}
