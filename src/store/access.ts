import type { AccessState, Limit } from '../identity/policy.ts';
import type { Rule } from '../identity/rules.ts';
import { type GrantRow, grant, listGrants, type NewGrant, revokeGrant } from './access/grants.ts';
import {
  addMember,
  createGroup,
  type GroupWithMembers,
  listGroups,
  type NewGroup,
  removeGroup,
  removeMember,
} from './access/groups.ts';
import {
  changeKey,
  createKey,
  getKey,
  type IssuedKey,
  type KeyChanges,
  type KeyFilter,
  type KeyRow,
  listKeys,
  type NewKeyInput,
  revokeKey,
  rotateKey,
  touchKeys,
} from './access/keys.ts';
import { createLimit, listLimits, removeLimit, type StoredLimit } from './access/limits.ts';
import type { GroupRow } from './access/rows.ts';
import { createRule, listRules, removeRule, type StoredRule } from './access/rules.ts';
import { readState } from './access/state.ts';
import type { Database } from './database.ts';

/** Principals, and what they may do. Keys are known by the id of their principal. */
export class AccessTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  /** All that decisions need, in one snapshot. */
  state(): Promise<AccessState> {
    return readState(this.database);
  }

  listKeys(filter: KeyFilter = {}): Promise<KeyRow[]> {
    return listKeys(this.database, filter);
  }

  getKey(id: string): Promise<KeyRow | undefined> {
    return getKey(this.database, id);
  }

  createKey(input: NewKeyInput): Promise<IssuedKey> {
    return createKey(this.database, input);
  }

  changeKey(id: string, input: KeyChanges): Promise<KeyRow> {
    return changeKey(this.database, id, input);
  }

  /** The present secrets stay valid for `overlapMs`, at most; for 0, they end at once. */
  rotateKey(
    id: string,
    input: { overlapMs: number; expiresAt?: Date | null | undefined },
  ): Promise<IssuedKey> {
    return rotateKey(this.database, id, input);
  }

  /** With its grants, memberships, and the rules and limits about it alone. */
  revokeKey(id: string): Promise<void> {
    return revokeKey(this.database, id);
  }

  /** Notes when keys were last used. Here, `id` is the public part of a key. */
  touchKeys(uses: readonly { id: string; at: Date }[]): Promise<void> {
    return touchKeys(this.database, uses);
  }

  listGroups(): Promise<GroupWithMembers[]> {
    return listGroups(this.database);
  }

  createGroup(input: NewGroup): Promise<GroupRow> {
    return createGroup(this.database, input);
  }

  /** With its grants, and the rules about it. */
  removeGroup(id: string): Promise<void> {
    return removeGroup(this.database, id);
  }

  addMember(groupId: string, principalId: string): Promise<void> {
    return addMember(this.database, groupId, principalId);
  }

  removeMember(groupId: string, principalId: string): Promise<void> {
    return removeMember(this.database, groupId, principalId);
  }

  listGrants(): Promise<GrantRow[]> {
    return listGrants(this.database);
  }

  /** A role that the holder has there already is replaced. */
  grant(input: NewGrant): Promise<GrantRow> {
    return grant(this.database, input);
  }

  revokeGrant(id: string): Promise<void> {
    return revokeGrant(this.database, id);
  }

  listRules(): Promise<StoredRule[]> {
    return listRules(this.database);
  }

  createRule(input: Omit<Rule, 'id'>): Promise<StoredRule> {
    return createRule(this.database, input);
  }

  removeRule(id: string): Promise<void> {
    return removeRule(this.database, id);
  }

  listLimits(): Promise<StoredLimit[]> {
    return listLimits(this.database);
  }

  createLimit(input: Omit<Limit, 'id'>): Promise<StoredLimit> {
    return createLimit(this.database, input);
  }

  removeLimit(id: string): Promise<void> {
    return removeLimit(this.database, id);
  }
}
