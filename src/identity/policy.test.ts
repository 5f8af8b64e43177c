import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KEY_PREFIX, newKey } from './keys.ts';
import { type AccessState, type Grant, Policy } from './policy.ts';
import type { Principal } from './principal.ts';
import type { Role } from './roles.ts';
import type { Rule } from './rules.ts';

const NOW = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});
afterEach(() => {
  vi.useRealTimers();
});

const nothing: AccessState = { principals: [], secrets: [], members: [], grants: [], rules: [], limits: [] };

function person(id: string, expiresAt?: number): AccessState['principals'][number] {
  return { id, kind: 'key', name: `name of ${id}`, expiresAt };
}

function grant(role: Role, id: string, project?: string, kind: Grant['holder']['kind'] = 'principal'): Grant {
  return { holder: { kind, id }, project, role };
}

function rule(given: Partial<Rule> & Pick<Rule, 'id'>): Rule {
  const any = { kind: undefined, server: '*', name: '*', readOnly: undefined, destructive: undefined };
  return { effect: 'deny', project: undefined, subject: { kind: 'everyone' }, ...any, ...given };
}

/** A policy, and what it reports. */
function observed() {
  const reports: string[] = [];
  const report = (what: string, principals: Iterable<Principal>) =>
    reports.push(`${what} ${[...principals].map(({ id }) => id).join(' ')}`.trim());
  const policy = new Policy({
    ended: (principal) => report('ended', [principal]),
    changed: (principals) => report('changed', principals),
    keyEnded: (principals) => report('key ended', principals),
    applied: () => report('applied', []),
  });
  return { policy, taken: () => reports.splice(0) };
}

describe('a policy', () => {
  it('knows principals by id, and keeps them while they are stored', () => {
    const { policy, taken } = observed();
    policy.apply({ ...nothing, principals: [person('a'), person('b')], grants: [grant('caller', 'a')] });
    const [a, b] = [policy.get('a')!, policy.get('b')!];
    expect([...policy.all()]).toEqual([a, b]);
    expect(a).toMatchObject({ kind: 'key', id: 'a', name: 'name of a', isEnded: false });
    expect([a.permissions.roleIn('p'), b.permissions.roleIn('p')]).toEqual(['caller', undefined]);
    expect(taken()).toEqual(['applied']);

    const renamed = { ...person('a'), name: 'other' };
    policy.apply({ ...nothing, principals: [renamed], grants: [grant('owner', 'a', 'p')] });
    expect(policy.get('a')).toBe(a);
    expect(a.name).toBe('other');
    expect([a.permissions.roleIn('p'), a.permissions.roleIn('q')]).toEqual(['owner', undefined]);
    expect([b.isEnded, policy.get('b')]).toEqual([true, undefined]);
    expect(taken()).toEqual(['ended b', 'changed a', 'applied']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('gives the roles of groups, and the higher of several', () => {
    const { policy } = observed();
    const members = [
      { group: 'g', principal: 'a' },
      { group: 'h', principal: 'a' },
      { group: 'g', principal: 'b' },
    ];
    const grants = [
      grant('viewer', 'a'),
      grant('operator', 'g', 'p', 'group'),
      grant('caller', 'h', undefined, 'group'),
    ];
    policy.apply({ ...nothing, principals: [person('a'), person('b'), person('c')], members, grants });
    const rolesOf = (id: string) => ['p', 'q'].map((project) => policy.get(id)!.permissions.roleIn(project));
    expect(['a', 'b', 'c'].map(rolesOf)).toEqual([
      ['operator', 'caller'],
      ['operator', undefined],
      [undefined, undefined],
    ]);
  });

  it('reports what ended and changed when everything is in force', () => {
    const { id, text, hash } = newKey();
    const seen: unknown[] = [];
    const look = () =>
      seen.push([policy.get('a')?.permissions.roleIn('p'), policy.authenticate(text), policy.epoch]);
    const policy = new Policy({ ended: look, changed: look, keyEnded: look, applied: () => {} });
    const secrets = [{ id, principal: 'b', hash, expiresAt: undefined }];
    const principals = [person('a'), person('b')];
    policy.apply({ ...nothing, principals, secrets, grants: [grant('viewer', 'a')] });
    policy.apply({ ...nothing, principals: [person('a')], grants: [grant('owner', 'a')] });
    expect(seen).toEqual([
      ['owner', 'unknown', 2],
      ['owner', 'unknown', 2],
    ]);
  });
});

describe('expiry', () => {
  it('ends a principal on time, and reports it once', () => {
    const { policy, taken } = observed();
    const principals = [person('a', NOW + HOUR_MS), person('b')];
    policy.apply({ ...nothing, principals });
    const a = policy.get('a')!;
    vi.advanceTimersByTime(HOUR_MS - 1);
    expect([a.isEnded, policy.epoch, taken()]).toEqual([false, 1, ['applied']]);
    vi.advanceTimersByTime(1);
    expect([a.isEnded, policy.epoch, policy.get('a')]).toEqual([true, 2, undefined]);
    expect(taken()).toEqual(['ended a', 'applied']);
    // It is stored until somebody removes it.
    policy.apply({ ...nothing, principals });
    policy.apply({ ...nothing, principals: [person('b')] });
    expect(taken()).toEqual(['applied', 'applied']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends one after the other', () => {
    const { policy, taken } = observed();
    const principals = [person('b', NOW + 2 * HOUR_MS), person('a', NOW + HOUR_MS), person('c', NOW - 1)];
    policy.apply({ ...nothing, principals });
    vi.advanceTimersByTime(3 * HOUR_MS);
    expect(taken()).toEqual(['applied', 'ended a', 'applied', 'ended b', 'applied']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('comes when it is stored to be now, and a later one begins anew', () => {
    const { policy, taken } = observed();
    policy.apply({ ...nothing, principals: [person('a')] });
    const a = policy.get('a')!;
    policy.apply({ ...nothing, principals: [person('a', NOW)] });
    expect([a.isEnded, policy.get('a')]).toEqual([true, undefined]);
    expect(taken()).toEqual(['applied', 'ended a', 'applied']);
    policy.apply({ ...nothing, principals: [person('a', NOW + HOUR_MS)] });
    expect(policy.get('a')).toMatchObject({ isEnded: false });
    expect(policy.get('a')).not.toBe(a);
    policy.close();
  });

  it('can be moved, and be far away', () => {
    const { policy, taken } = observed();
    policy.apply({ ...nothing, principals: [person('a', NOW + HOUR_MS)] });
    policy.apply({ ...nothing, principals: [person('a', NOW + 1_000 * 24 * HOUR_MS)] });
    vi.advanceTimersByTime(2 * HOUR_MS);
    expect(policy.get('a')).toBeDefined();
    expect(policy.epoch).toBe(2);
    expect(taken()).toEqual(['applied', 'applied']);
    policy.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('follows a clock that is set', () => {
    const { policy, taken } = observed();
    policy.apply({ ...nothing, principals: [person('a', NOW + 24 * HOUR_MS)] });
    vi.setSystemTime(NOW + 25 * HOUR_MS);
    vi.advanceTimersByTime(60_000);
    expect(taken()).toEqual(['applied', 'ended a', 'applied']);
  });
});

describe('a credential', () => {
  const [one, other] = [newKey(), newKey()];
  const secretOf = ({ id, hash }: typeof one, principal: string, expiresAt?: number) => ({
    ...{ id, hash, principal, expiresAt },
  });

  it('makes its bearer the principal', () => {
    const { policy } = observed();
    policy.apply({
      ...nothing,
      principals: [person('a')],
      secrets: [secretOf(one, 'a'), secretOf(other, 'a')],
    });
    for (const { id, text } of [one, other])
      expect(policy.authenticate(text)).toMatchObject({ principal: policy.get('a'), secretId: id });
    expect(policy.ownerOf(one.id)).toBe(policy.get('a'));
  });

  it('still has an owner after it was removed, among the latest of these', () => {
    const { policy } = observed();
    policy.apply({ ...nothing, principals: [person('a')], secrets: [secretOf(one, 'a')] });
    const owner = policy.get('a');
    policy.apply(nothing);
    expect(policy.authenticate(one.text)).toBe('unknown');
    expect(policy.ownerOf(one.id)).toBe(owner);
    const many = Array.from({ length: 1_000 }, () => secretOf(newKey(), 'b'));
    policy.apply({ ...nothing, principals: [person('b')], secrets: many });
    policy.apply(nothing);
    expect(policy.ownerOf(one.id)).toBeUndefined();
    expect(policy.ownerOf(many[0]!.id)).toMatchObject({ id: 'b' });
  });

  it('is unknown if any of it is wrong', () => {
    const { policy } = observed();
    const secrets = [secretOf(one, 'a'), { ...secretOf(newKey(), 'a'), hash: Buffer.alloc(3) }];
    policy.apply({ ...nothing, principals: [person('a')], secrets: [...secrets, secretOf(other, 'nobody')] });
    const wrong = one.text.slice(0, 16) + other.text.slice(16);
    for (const text of ['', 'token', one.id, wrong, other.text, newKey().text, `${one.text} `])
      expect(policy.authenticate(text)).toBe('unknown');
    expect(policy.ownerOf(other.id)).toBeUndefined();
  });

  it('takes one comparison in constant time, whether its id is known or not', () => {
    const { policy } = observed();
    const damaged = { ...secretOf(newKey(), 'a'), hash: Buffer.alloc(3) };
    policy.apply({ ...nothing, principals: [person('a')], secrets: [secretOf(one, 'a'), damaged] });
    const compare = vi.spyOn(crypto, 'timingSafeEqual');
    syncBuiltinESMExports();
    try {
      const ofDamaged = KEY_PREFIX + damaged.id + one.text.slice(16);
      for (const text of [one.text, other.text, one.text.slice(0, 16) + other.text.slice(16), ofDamaged])
        policy.authenticate(text);
      const lengths = compare.mock.calls.map((given) => given.map(({ byteLength }) => byteLength));
      expect(lengths).toEqual(Array(4).fill([32, 32]));
    } finally {
      compare.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it('expires on its own, and is told apart from an unknown one', () => {
    const { policy, taken } = observed();
    const secrets = [secretOf(one, 'a', NOW + HOUR_MS), secretOf(other, 'a')];
    policy.apply({ ...nothing, principals: [person('a')], secrets });
    const before = policy.epoch;
    vi.advanceTimersByTime(HOUR_MS);
    expect(policy.epoch).toBeGreaterThan(before);
    expect(policy.authenticate(one.text)).toBe('expired');
    expect(policy.authenticate(other.text)).toMatchObject({ secretId: other.id });
    // Whoever knows only the id learns nothing.
    expect(policy.authenticate(one.text.slice(0, 16) + other.text.slice(16))).toBe('unknown');
    expect(taken()).toEqual(['applied', 'key ended a', 'applied']);
    // It stays known until it is removed.
    policy.apply({ ...nothing, principals: [person('a')], secrets });
    expect(policy.authenticate(one.text)).toBe('expired');
    policy.apply({ ...nothing, principals: [person('a')], secrets: secrets.slice(1) });
    expect(policy.authenticate(one.text)).toBe('unknown');
  });

  it('that is replaced ends, and its principal goes on', () => {
    const { policy, taken } = observed();
    const state = { ...nothing, principals: [person('a'), person('b')] };
    policy.apply({ ...state, secrets: [secretOf(one, 'a'), secretOf(newKey(), 'b')] });
    policy.apply({ ...state, secrets: [secretOf(one, 'a', NOW + HOUR_MS), secretOf(other, 'a')] });
    expect(taken()).toEqual(['applied', 'key ended b', 'applied']);
    policy.apply({ ...state, secrets: [secretOf(other, 'a')] });
    expect(taken()).toEqual(['key ended a', 'applied']);
    expect(policy.get('a')!.isEnded).toBe(false);
    // With its principal, nobody is left to go on.
    policy.apply({ ...nothing, principals: [person('b')] });
    expect(taken()).toEqual(['ended a', 'applied']);
  });

  it('expires with its principal, before and after a start', () => {
    for (const expiresAt of [NOW - 1, NOW, NOW + HOUR_MS]) {
      const { policy } = observed();
      policy.apply({ ...nothing, principals: [person('a', expiresAt)], secrets: [secretOf(one, 'a')] });
      vi.advanceTimersByTime(HOUR_MS);
      expect(policy.authenticate(one.text)).toBe('expired');
      expect(policy.ownerOf(one.id)).toMatchObject({ id: 'a', isEnded: true });
      vi.setSystemTime(NOW);
    }
  });

  it('is expired at once, even before the timer', () => {
    const { policy } = observed();
    const principals = [person('a'), person('b', NOW + HOUR_MS)];
    const secrets = [secretOf(one, 'a', NOW + HOUR_MS), secretOf(other, 'b')];
    policy.apply({ ...nothing, principals, secrets });
    vi.setSystemTime(NOW + HOUR_MS);
    expect([policy.authenticate(one.text), policy.authenticate(other.text)]).toEqual(['expired', 'expired']);
    policy.close();
  });

  it('that was revoked is unknown', () => {
    const { policy } = observed();
    policy.apply({ ...nothing, principals: [person('a')], secrets: [secretOf(one, 'a')] });
    policy.apply(nothing);
    expect(policy.authenticate(one.text)).toBe('unknown');
  });

  it('notes its last use, to be written in batches', () => {
    const { policy } = observed();
    expect(policy.takeUses()).toEqual([]);
    policy.used(one.id, NOW);
    policy.used(other.id, NOW + 1);
    policy.used(one.id, NOW + 2);
    expect(policy.takeUses().toSorted((a, b) => b.at - a.at)).toEqual([
      { id: one.id, at: NOW + 2 },
      { id: other.id, at: NOW + 1 },
    ]);
    expect(policy.takeUses()).toEqual([]);
  });
});

describe('equal permissions', () => {
  const rules = [
    rule({ id: 'r1', name: 'delete_*' }),
    rule({ id: 'r2', name: 'admin_*', subject: { kind: 'group', id: 'g0' } }),
    rule({ id: 'r3', subject: { kind: 'principal', id: '7' } }),
  ];

  function many(): AccessState {
    const ids = Array.from({ length: 10_000 }, (_, index) => String(index));
    const roleOf = (id: string): Role =>
      (['viewer', 'caller', 'operator', 'owner', 'admin'] as const)[Number(id) % 5]!;
    return {
      ...nothing,
      principals: ids.map((id) => person(id)),
      grants: ids.map((id) => grant(roleOf(id), id)),
    };
  }

  const objects = (policy: Policy) => new Set([...policy.all()].map(({ permissions }) => permissions));

  it('are one object', () => {
    const { policy } = observed();
    policy.apply(many());
    expect(objects(policy).size).toBe(5);
    policy.apply({ ...many(), rules: rules.slice(0, 1) });
    expect(objects(policy).size).toBe(5);
    // Two more: one principal with a rule of its own, and those of a group.
    const members = Array.from({ length: 1_000 }, (_, index) => ({
      group: 'g0',
      principal: String(index * 5),
    }));
    policy.apply({ ...many(), rules, members });
    expect(objects(policy).size).toBe(7);
  });

  it('are the same after changes that are about something else, whatever their order', () => {
    const { policy, taken } = observed();
    const members = [{ group: 'g0', principal: '5' }];
    const state = { ...many(), rules, members };
    policy.apply(state);
    const before = objects(policy);
    taken();
    policy.apply(structuredClone({ ...state, rules: rules.toReversed(), grants: state.grants.toReversed() }));
    policy.apply({ ...state, principals: [...state.principals, person('new')] });
    const inOther = rule({ id: 'r4', subject: { kind: 'principal', id: 'new' } });
    policy.apply({ ...state, rules: [...rules, inOther] });
    expect(taken().filter((text) => text !== 'applied')).toEqual(['ended new']);
    expect(objects(policy)).toEqual(before);
    for (const permissions of objects(policy)) expect(before.has(permissions)).toBe(true);
  });

  it('are others for those whom a change is about', () => {
    const { policy, taken } = observed();
    const principals = ['a', 'b', 'c'].map((id) => person(id));
    const state = {
      ...nothing,
      principals,
      grants: principals.map(({ id }) => grant('caller', id, `in ${id}`)),
    };
    policy.apply(state);
    taken();
    policy.apply({ ...state, rules: [rule({ id: 'r1', project: 'in b' })] });
    expect(taken()).toEqual(['changed b', 'applied']);
    // The same id with other content.
    policy.apply({ ...state, rules: [rule({ id: 'r1', project: 'in b', name: 'x' })] });
    expect(taken()).toEqual(['changed b', 'applied']);
    policy.apply({ ...state, rules: [rule({ id: 'r1', project: 'in c' })] });
    expect(taken()).toEqual(['changed b c', 'applied']);
  });

  it('ignore what makes no difference', () => {
    const { policy } = observed();
    const grants = [
      ...[grant('owner', 'a'), grant('caller', 'a', 'p'), grant('owner', 'a', 'q')],
      ...[grant('owner', 'b'), grant('owner', 'c')],
    ];
    const forOthers = [
      rule({ id: 'r1', subject: { kind: 'role', role: 'viewer' } }),
      rule({ id: 'r2', subject: { kind: 'principal', id: 'd' } }),
      rule({ id: 'r3', subject: { kind: 'principal', id: 'e' }, project: 'p' }),
    ];
    const principals = ['a', 'b', 'c', 'e', 'f'].map((id) => person(id));
    policy.apply({ ...nothing, principals, grants, rules: forOthers });
    const [a, b, c, e, f] = principals.map(({ id }) => policy.get(id)!.permissions);
    expect([a === b, b === c, e === f, a === e]).toEqual([true, true, true, false]);
    expect(a!.seesAll).toBe(true);
  });
});
