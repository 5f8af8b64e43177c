import { isKey, keyIdOf } from './keys.ts';
import { noPermissions } from './permissions.ts';
import { Principal } from './principal.ts';
import { type RoleFacts, SharedPermissions } from './shared-permissions.ts';

export type { Grant } from './shared-permissions.ts';

/** The stored facts about access. Dates are milliseconds. */
export interface AccessState extends RoleFacts {
  principals: readonly { id: string; kind: 'key' | 'person'; name: string; expiresAt: number | undefined }[];
  /** Several for a key that is being rotated. `id`: the public part of the key. */
  secrets: readonly { id: string; principal: string; hash: Buffer; expiresAt: number | undefined }[];
  limits: readonly Limit[];
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
  /** Whether all principals share one counter. */
  readonly isShared: boolean;
}

/** Kept until it is removed from the store, so that whoever uses it later learns that it has expired. */
interface Secret {
  readonly hash: Buffer;
  expiresAt: number;
  owner: Principal;
  /** Whether its end was announced. */
  isOver: boolean;
}

interface Authenticated {
  principal: Principal;
  secretId: string;
  credential: { readonly isOver: boolean };
}

interface PolicyEvents {
  /** Revoked, removed or expired. */
  ended(principal: Principal): void;
  /** Their permissions have changed. */
  changed(principals: ReadonlySet<Principal>): void;
  /** One of their keys has ended, and they go on with another. */
  keyEnded(principals: ReadonlySet<Principal>): void;
  /** After each change of what anybody may do. */
  applied(): void;
}

/** The clock may be changed, or the machine sleep: no timer runs for longer. */
const MAX_TIMER_MS = 60_000;
const MAX_FORMER = 1_000;

/** Who is known, and what they may do: the stored facts in memory, for decisions without I/O. */
export class Policy {
  private readonly events: PolicyEvents;
  private readonly permissions = new SharedPermissions();
  private principals = new Map<string, Principal>();
  private secrets = new Map<string, Secret>();
  /** The owners of secrets that were removed lately, oldest first, for the audit log. */
  private readonly former = new Map<string, Principal>();
  private uses = new Map<string, number>();
  /** Grows each time that the uses are taken: a use needs to be noted once in between. */
  useRound = 0;
  private timer: NodeJS.Timeout | undefined;
  private checkedAt = 0;
  private changes = 0;
  limits: readonly Limit[] = [];

  constructor(events: PolicyEvents) {
    this.events = events;
  }

  /** Grows with everything that is applied and everything that expires: while it stays, so does who is known. */
  get epoch(): number {
    return this.changes;
  }

  get(id: string): Principal | undefined {
    return this.principals.get(id);
  }

  all(): Iterable<Principal> {
    return this.principals.values();
  }

  /** The principal with this secret, even if one of the two has expired, or was removed lately. */
  ownerOf(secretId: string): Principal | undefined {
    return this.secrets.get(secretId)?.owner ?? this.former.get(secretId);
  }

  /** Takes as long for an unknown key as for a wrong one. */
  authenticate(key: string): Authenticated | 'unknown' | 'expired' {
    const secretId = keyIdOf(key);
    if (secretId === undefined) return 'unknown';
    const secret = this.secrets.get(secretId);
    if (!isKey(key, secret?.hash) || secret === undefined) return 'unknown';
    const { owner, expiresAt } = secret;
    const now = Date.now();
    if (owner.isEnded || owner.expiresAt <= now || expiresAt <= now) return 'expired';
    return { principal: owner, secretId, credential: secret };
  }

  /** Notes when a secret was used. */
  used(secretId: string, now: number): void {
    this.uses.set(secretId, now);
  }

  /** The last use of each secret that was used since the last time. */
  takeUses(): { id: string; at: number }[] {
    const taken = [...this.uses].map(([id, at]) => ({ id, at }));
    this.uses.clear();
    this.useRound++;
    return taken;
  }

  /** Replaces everything by what is stored. */
  apply(state: AccessState): void {
    this.checkedAt = Date.now();
    const before = this.principals;
    const { changed, expired } = this.replacePrincipals(state);
    const ended = [...before.values()].filter(({ id }) => !this.principals.has(id));
    const previous = this.secrets;
    this.secrets = new Map();
    for (const { id, principal, hash, expiresAt = Number.POSITIVE_INFINITY } of state.secrets) {
      const owner = this.principals.get(principal) ?? expired.get(principal);
      if (owner === undefined) continue;
      const isExpired = expiresAt <= this.checkedAt;
      const known = previous.get(id);
      // Requests that have begun refer to it.
      if (known !== undefined) Object.assign(known, { expiresAt, owner, isOver: known.isOver && isExpired });
      this.secrets.set(id, known ?? { hash, expiresAt, owner, isOver: isExpired });
    }
    this.rememberFormer(previous);
    this.limits = state.limits;
    this.schedule();
    const over = [...previous].filter(([id, secret]) => !secret.isOver && !this.isValid(id));
    for (const [, secret] of over) secret.isOver = true;
    this.announce(ended, changed, this.ownersOf(over.map(([, secret]) => secret)));
  }

  close(): void {
    clearTimeout(this.timer);
  }

  /** Those that are known already stay the same objects. */
  private replacePrincipals(state: AccessState) {
    const permissionsOf = this.permissions.by(state);
    const before = this.principals;
    const changed = new Set<Principal>();
    const expired = new Map<string, Principal>();
    this.principals = new Map();
    for (const { id, kind, name, expiresAt = Number.POSITIVE_INFINITY } of state.principals) {
      const permissions = permissionsOf(id);
      const known = before.get(id);
      const principal = known ?? new Principal(kind, id, name, permissions, expiresAt);
      const isExpired = expiresAt <= this.checkedAt;
      if (known !== undefined) {
        if (known.permissions !== permissions && !isExpired) changed.add(known);
        known.name = name;
        known.permissions = permissions;
        known.expiresAt = expiresAt;
      }
      if (isExpired) {
        end(principal);
        expired.set(id, principal);
      } else this.principals.set(id, principal);
    }
    return { changed, expired };
  }

  /** Events come last: who hears of them sees everything as it is now. */
  private announce(
    ended: readonly Principal[],
    changed: ReadonlySet<Principal>,
    withEndedKey: ReadonlySet<Principal>,
  ): void {
    this.changes++;
    for (const principal of ended) end(principal);
    for (const principal of ended) this.events.ended(principal);
    if (changed.size > 0) this.events.changed(changed);
    if (withEndedKey.size > 0) this.events.keyEnded(withEndedKey);
    this.events.applied();
  }

  private expire(): void {
    const [since, now] = [this.checkedAt, Date.now()];
    this.checkedAt = now;
    const ended = [...this.principals.values()].filter(({ expiresAt }) => expiresAt <= now);
    for (const { id } of ended) this.principals.delete(id);
    const over = [...this.secrets.values()].filter(({ expiresAt }) => expiresAt > since && expiresAt <= now);
    for (const secret of over) secret.isOver = true;
    this.schedule();
    if (over.length > 0 || ended.length > 0) this.announce(ended, new Set(), this.ownersOf(over));
  }

  private isValid(secretId: string): boolean {
    const secret = this.secrets.get(secretId);
    return secret !== undefined && secret.expiresAt > this.checkedAt;
  }

  /** Those who are still there. */
  private ownersOf(secrets: readonly Secret[]): ReadonlySet<Principal> {
    return new Set(
      secrets.map(({ owner }) => owner).filter((owner) => this.principals.get(owner.id) === owner),
    );
  }

  private rememberFormer(previous: ReadonlyMap<string, Secret>): void {
    for (const [id, { owner }] of previous) if (!this.secrets.has(id)) this.former.set(id, owner);
    for (const id of this.former.keys()) {
      if (this.former.size <= MAX_FORMER) break;
      this.former.delete(id);
    }
  }

  /** Sets the timer for what expires next. */
  private schedule(): void {
    clearTimeout(this.timer);
    let next = Number.POSITIVE_INFINITY;
    for (const known of [this.principals, this.secrets])
      for (const { expiresAt } of known.values())
        if (expiresAt > this.checkedAt) next = Math.min(next, expiresAt);
    if (next === Number.POSITIVE_INFINITY) return;
    const inMs = Math.max(next - this.checkedAt, 1);
    this.timer = setTimeout(() => this.expire(), Math.min(inMs, MAX_TIMER_MS));
    this.timer.unref();
  }
}

const nothing = noPermissions();

function end(principal: Principal): void {
  principal.isEnded = true;
  principal.permissions = nothing;
}
