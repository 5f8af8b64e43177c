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

/** Makes one object for equal permissions, and keeps it while they stay the same: whatever is built for it is kept, too. */
export class SharedPermissions {
  private inUse = new Map<string, Permissions>();
  private rules = new Map<string, NumberedRule>();
  private lastNumber = 0;

  /** The permissions of each principal, by these facts. */
  by({ members, grants, rules }: RoleFacts): (principal: string) => Permissions {
    const groupsOf = Map.groupBy(members, ({ principal }) => principal);
    const grantsOf = Map.groupBy(grants, ({ holder }) => holder.id);
    const rulesOf = Map.groupBy(this.numbered(rules), ({ rule: { subject } }) =>
      'id' in subject ? subject.id : undefined,
    );
    const byFacts = new Map<string, Permissions>();
    const before = this.inUse;
    this.inUse = new Map();
    return (id) => {
      const holders = [id, ...(groupsOf.get(id) ?? []).map(({ group }) => group)];
      const held = grantsFrom(holders.flatMap((holder) => grantsOf.get(holder) ?? []));
      const named = holders.filter((holder) => rulesOf.has(holder));
      const grantsText = textOf(held);
      // Most principals have the facts of another one.
      const facts = [grantsText, ...named.toSorted()].join('\n');
      let permissions = byFacts.get(facts);
      if (permissions === undefined) {
        const applicable = [undefined, ...named]
          .flatMap((subject) => rulesOf.get(subject) ?? [])
          .filter(({ rule }) => mayApply(rule, held))
          .toSorted((one, other) => one.number - other.number);
        const key = [grantsText, ...applicable.map(({ number }) => number)].join('\n');
        permissions = this.inUse.get(key) ?? before.get(key);
        permissions ??= new Permissions(
          held,
          applicable.map(({ rule }) => rule),
        );
        byFacts.set(facts, permissions);
        this.inUse.set(key, permissions);
      }
      return permissions;
    };
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
