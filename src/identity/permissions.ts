import { type Action, higher, type Role, roleMay } from './roles.ts';
import { RuleSet } from './rule-set.ts';
import type { Item, Rule } from './rules.ts';

/** The facts from which permissions follow. */
export interface Grants {
  /** The role in every project. */
  readonly everywhere: Role | undefined;
  /** By project id. */
  readonly byProject: ReadonlyMap<string, Role>;
}

export type Decision =
  | { isAllowed: true; role: Role; rule: Rule | undefined }
  /** Without a rule, the role is missing or too low. */
  | { isAllowed: false; role: Role | undefined; rule: Rule | undefined };

/** What principals with the same roles and rules may do. Principals with equal permissions share one object. */
export class Permissions {
  private readonly grants: Grants;
  private readonly rules: readonly Rule[];
  /** True if nothing is hidden and nothing is forbidden, in any project. */
  readonly isUnrestricted: boolean;
  /** Whether every project is visible, with everything in it. */
  readonly seesAll: boolean;
  private readonly ruleSets = new Map<string, RuleSet | undefined>();

  /** `rules`: those that may apply, of any project. */
  constructor(grants: Grants, rules: readonly Rule[]) {
    this.grants = grants;
    this.rules = rules;
    this.seesAll = grants.everywhere !== undefined && rules.length === 0;
    this.isUnrestricted = this.seesAll && grants.everywhere === 'admin';
  }

  /** Undefined if nothing in this project is hidden. */
  visibleIn(project: string): ((item: Item) => boolean) | undefined {
    if (!this.may('see', project)) return () => false;
    const rules = this.rulesIn(project);
    return rules && ((item) => !rules.denies(item));
  }

  /** The role in a project, or in all projects. */
  roleIn(project: string | undefined): Role | undefined {
    const { everywhere, byProject } = this.grants;
    if (project === undefined || byProject.size === 0) return everywhere;
    return higher(everywhere, byProject.get(project));
  }

  /** Whether the role suffices. Without a project: in all projects. */
  may(action: Action, project: string | undefined): boolean {
    return roleMay(this.roleIn(project), action);
  }

  /** Whether the role suffices in some project. */
  mayAnywhere(action: Action): boolean {
    const { everywhere, byProject } = this.grants;
    return roleMay(everywhere, action) || [...byProject.values()].some((role) => roleMay(role, action));
  }

  /** Undefined if no rule narrows the role in this project. */
  rulesIn(project: string): RuleSet | undefined {
    if (this.rules.length === 0) return undefined;
    if (!this.ruleSets.has(project)) {
      const role = this.roleIn(project);
      const applicable = this.rules.filter(
        (rule) =>
          (rule.project === undefined || rule.project === project) &&
          (rule.subject.kind !== 'role' || rule.subject.role === role),
      );
      this.ruleSets.set(project, applicable.length === 0 ? undefined : new RuleSet(applicable));
    }
    return this.ruleSets.get(project);
  }

  /** The one decision about an item: to list it (`see`) and to use it (`call`). */
  decide(action: 'see' | 'call', project: string, item: Item): Decision {
    const role = this.roleIn(project);
    if (role === undefined || !roleMay(role, 'see')) return { isAllowed: false, role, rule: undefined };
    const rule = this.rulesIn(project)?.decider(item);
    if (rule?.effect === 'deny') return { isAllowed: false, role, rule };
    return roleMay(role, action)
      ? { isAllowed: true, role, rule }
      : { isAllowed: false, role, rule: undefined };
  }

  /** Whether denials may name what they deny: these roles see every name through the API. */
  mayKnowOf(project: string): boolean {
    return this.may('operate', project);
  }
}

/** Of those who were revoked, removed or have expired. */
export function noPermissions(): Permissions {
  return new Permissions({ everywhere: undefined, byProject: new Map() }, []);
}

/** Of the local user, whom no rule can lock out. */
export function unrestricted(): Permissions {
  return new Permissions({ everywhere: 'admin', byProject: new Map() }, []);
}
