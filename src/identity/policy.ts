import { type Grants, Permissions } from './permissions.ts';
import { Principal } from './principal.ts';
import { higher, type Role } from './roles.ts';
import type { Rule } from './rules.ts';

/** The stored facts about access. Dates are milliseconds. */
export interface AccessState {
  principals: readonly { id: string; kind: 'key' | 'person'; name: string; expiresAt: number | undefined }[];
  /** Several for a key that is being rotated. `id`: the public part of the key. */
  secrets: readonly { id: string; principal: string; hash: Buffer; expiresAt: number | undefined }[];
  members: readonly { group: string; principal: string }[];
  grants: readonly Grant[];
  rules: readonly Rule[];
  limits: readonly Limit[];
}

export interface Grant {
  holder: { kind: 'principal' | 'group'; id: string };
  /** Undefined for all projects. */
  project: string | undefined;
  role: Role;
}

/** Applies to the requests that fit all of its conditions, together. */
export interface Limit {
  readonly id: string;
  readonly principal: string | undefined;
  readonly project: string | undefined;
  /** Patterns of servers and tools. */
  readonly server: string | undefined;
  readonly tool: string | undefined;
  readonly perMinute: number | undefined;
  readonly concurrent: number | undefined;
}

interface Secret {
  hash: Buffer;
  expiresAt: number;
  principal: Principal;
}

interface PolicyEvents {
  /** Revoked, removed or expired. */
  ended(principal: Principal): void;
  /** Its permissions have changed. */
  changed(principal: Principal): void;
}

const MAX_TIMER_MS = 2 ** 31 - 1;

/** Who is known, and what they may do: the stored facts in memory, for decisions without I/O. */
export class Policy {
  private readonly events: PolicyEvents;
  private readonly principals = new Map<string, Principal>();
  private secrets = new Map<string, Secret>();
  private shared = new Map<string, Permissions>();
  private timer: NodeJS.Timeout | undefined;
  limits: readonly Limit[] = [];

  constructor(events: PolicyEvents) {
    this.events = events;
  }

  get(id: string): Principal | undefined {
    return this.principals.get(id);
  }

  secret(id: string): Secret | undefined {
    return this.secrets.get(id);
  }

  all(): Iterable<Principal> {
    return this.principals.values();
  }

  /** Replaces everything by what is stored. */
  apply(state: AccessState): void {
    const permissionsOf = this.permissionsBy(state);
    const known = new Set<string>();
    const changed: Principal[] = [];
    for (const { id, kind, name, expiresAt = Number.POSITIVE_INFINITY } of state.principals) {
      known.add(id);
      const permissions = permissionsOf(id);
      const present = this.principals.get(id);
      if (present === undefined)
        this.principals.set(id, new Principal(kind, id, name, permissions, expiresAt));
      else {
        if (present.permissions !== permissions) changed.push(present);
        Object.assign(present, { name, permissions, expiresAt });
      }
    }
    for (const [id, principal] of this.principals) if (!known.has(id)) this.end(principal);
    this.secrets = new Map();
    for (const { id, principal: owner, hash, expiresAt = Number.POSITIVE_INFINITY } of state.secrets) {
      const principal = this.principals.get(owner);
      if (principal !== undefined) this.secrets.set(id, { hash, expiresAt, principal });
    }
    this.limits = state.limits;
    for (const principal of changed) this.events.changed(principal);
    this.expire();
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private permissionsBy({ members, grants, rules }: AccessState): (principal: string) => Permissions {
    const groupsOf = Map.groupBy(members, ({ principal }) => principal);
    const grantsOf = Map.groupBy(grants, ({ holder }) => holder.id);
    const named = new Set(rules.flatMap(({ subject }) => ('id' in subject ? [subject.id] : [])));
    const byFacts = new Map<string, Permissions>();
    const before = this.shared;
    const inUse = new Map<string, Permissions>();
    this.shared = inUse;
    return (id) => {
      const groups = (groupsOf.get(id) ?? []).map(({ group }) => group);
      const held = [id, ...groups].flatMap((holder) => grantsOf.get(holder) ?? []);
      const subjects = [id, ...groups].filter((holder) => named.has(holder)).toSorted();
      const grants = grantsFrom(held);
      const facts = JSON.stringify([grants.everywhere, [...grants.byProject].toSorted(), subjects]);
      let permissions = byFacts.get(facts);
      if (permissions === undefined) {
        const applicable = rules.filter((rule) => mayApply(rule, grants, subjects));
        const key = facts + JSON.stringify(applicable);
        permissions = inUse.get(key) ?? before.get(key) ?? new Permissions(grants, applicable);
        byFacts.set(facts, permissions);
        inUse.set(key, permissions);
      }
      return permissions;
    };
  }

  private end(principal: Principal): void {
    this.principals.delete(principal.id);
    principal.isEnded = true;
    this.events.ended(principal);
  }

  /** Ends what has expired, and sets the timer for what expires next. */
  private expire(): void {
    clearTimeout(this.timer);
    const now = Date.now();
    let next = Number.POSITIVE_INFINITY;
    for (const principal of this.principals.values()) {
      if (principal.expiresAt <= now) this.end(principal);
      else next = Math.min(next, principal.expiresAt);
    }
    for (const [id, { expiresAt }] of this.secrets) {
      if (expiresAt <= now) this.secrets.delete(id);
      else next = Math.min(next, expiresAt);
    }
    if (next === Number.POSITIVE_INFINITY) return;
    this.timer = setTimeout(() => this.expire(), Math.min(next - now, MAX_TIMER_MS));
    this.timer.unref();
  }
}

function grantsFrom(held: readonly Grant[]): Grants {
  const byProject = new Map<string, Role>();
  let everywhere: Role | undefined;
  for (const { project, role } of held) {
    if (project === undefined) everywhere = higher(role, everywhere);
    else byProject.set(project, higher(role, byProject.get(project))!);
  }
  return { everywhere, byProject };
}

function mayApply({ project, subject }: Rule, grants: Grants, subjects: readonly string[]): boolean {
  if ('id' in subject && !subjects.includes(subject.id)) return false;
  return project === undefined || grants.everywhere !== undefined || grants.byProject.has(project);
}
