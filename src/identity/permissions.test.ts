import { describe, expect, it } from 'vitest';
import { Permissions, unrestricted } from './permissions.ts';
import type { Role } from './roles.ts';
import type { Item, Rule, Subject } from './rules.ts';

const list: Item = { kind: 'tool', servers: ['github', 'github'], name: 'list', hints: [] };
const remove: Item = { ...list, name: 'delete_repo' };

function permissions(everywhere: Role | undefined, byProject: Record<string, Role> = {}, rules: Rule[] = []) {
  return new Permissions({ everywhere, byProject: new Map(Object.entries(byProject)) }, rules);
}

let count = 0;

function rule(
  effect: Rule['effect'],
  name: string,
  subject: Subject = { kind: 'everyone' },
  project?: string,
): Rule {
  const any = { kind: undefined, server: '*', readOnly: undefined, destructive: undefined };
  return { id: `r${++count}`, effect, project, subject, name, ...any };
}

describe('permissions', () => {
  it('of the local user have no limits', () => {
    const local = unrestricted();
    expect(local.isUnrestricted).toBe(true);
    expect(local.may('administer', undefined)).toBe(true);
    expect(local.decide('call', 'p', remove)).toEqual({ isAllowed: true, role: 'admin', rule: undefined });
    expect(local.visibleIn('p')).toBeUndefined();
  });

  it('are those of the higher role, in a project and everywhere', () => {
    const mixed = permissions('caller', { p: 'owner', q: 'viewer' });
    expect([mixed.roleIn('p'), mixed.roleIn('q'), mixed.roleIn('r')]).toEqual(['owner', 'caller', 'caller']);
    expect(mixed.roleIn(undefined)).toBe('caller');
    expect([mixed.may('manage', 'p'), mixed.may('manage', 'q')]).toEqual([true, false]);
    // In all projects at once.
    expect([mixed.may('manage', undefined), mixed.may('call', undefined)]).toEqual([false, true]);
    expect([mixed.mayAnywhere('manage'), mixed.mayAnywhere('administer')]).toEqual([true, false]);
    expect([mixed.mayKnowOf('p'), mixed.mayKnowOf('q')]).toEqual([true, false]);
  });

  it('do not exist in projects without a role', () => {
    const inOne = permissions(undefined, { p: 'admin' }, [rule('allow', '*')]);
    expect(inOne.decide('see', 'q', list)).toEqual({ isAllowed: false, role: undefined, rule: undefined });
    expect(inOne.may('see', 'q')).toBe(false);
    expect(inOne.seesAll).toBe(false);
    expect(inOne.isUnrestricted).toBe(false);
    expect(inOne.visibleIn('q')!(list)).toBe(false);
    expect(permissions(undefined).visibleIn('q')!(list)).toBe(false);
    expect(permissions(undefined).mayAnywhere('see')).toBe(false);
  });

  it('of a viewer are to see, and not to call', () => {
    const viewer = permissions('viewer');
    expect(viewer.decide('see', 'p', list).isAllowed).toBe(true);
    expect(viewer.decide('call', 'p', list)).toEqual({ isAllowed: false, role: 'viewer', rule: undefined });
    expect(viewer.seesAll).toBe(true);
    expect(viewer.isUnrestricted).toBe(false);
  });

  it('are never more than the role, whatever a rule allows', () => {
    const viewer = permissions('viewer', {}, [rule('allow', '*')]);
    expect(viewer.decide('see', 'p', list).isAllowed).toBe(true);
    expect(viewer.decide('call', 'p', list)).toEqual({ isAllowed: false, role: 'viewer', rule: undefined });
  });

  it('are narrowed by rules, even for an admin, and say by which', () => {
    const denial = rule('deny', 'delete_*');
    const admin = permissions('admin', {}, [denial]);
    expect(admin.isUnrestricted).toBe(false);
    expect(admin.seesAll).toBe(false);
    expect(admin.decide('call', 'p', remove)).toEqual({ isAllowed: false, role: 'admin', rule: denial });
    expect(admin.decide('see', 'p', remove).isAllowed).toBe(false);
    expect(admin.decide('call', 'p', list)).toEqual({ isAllowed: true, role: 'admin', rule: undefined });
    const isVisible = admin.visibleIn('p')!;
    expect([isVisible(list), isVisible(remove)]).toEqual([true, false]);
    // Rules are about items; the role stays.
    expect(admin.may('administer', undefined)).toBe(true);
  });

  it('follow the rules of each project, for the role that is held there', () => {
    const forCallers = rule('deny', '*', { kind: 'role', role: 'caller' });
    const inP = rule('deny', 'delete_*', undefined, 'p');
    const mixed = permissions('caller', { p: 'operator' }, [forCallers, inP]);
    expect(mixed.decide('call', 'p', list).rule).toBeUndefined();
    expect(mixed.decide('call', 'p', remove).rule).toBe(inP);
    expect(mixed.decide('call', 'q', list).rule).toBe(forCallers);
    const owner = permissions('owner', {}, [forCallers, inP]);
    expect(owner.visibleIn('q')).toBeUndefined();
    expect(owner.rulesIn('q')).toBeUndefined();
    expect(owner.rulesIn('p')).toBe(owner.rulesIn('p'));
  });

  it('are not widened in a project where a rule denies in all projects', () => {
    const me: Subject = { kind: 'principal', id: 'me' };
    const general = rule('deny', 'delete_*');
    const inP = rule('allow', 'delete_repo', me, 'p');
    const owner = permissions('owner', {}, [general, inP]);
    expect(owner.decide('call', 'p', remove)).toMatchObject({ isAllowed: false, rule: general });
    expect(owner.visibleIn('p')!({ ...remove, isListed: true })).toBe(false);
    expect(owner.rulesIn('p')!.decider({ ...list, name: 'delete_issue' })).toBe(general);
    expect(
      permissions('owner', {}, [rule('deny', '*'), inP])
        .rulesIn('p')!
        .showsServer(['github']),
    ).toBe(false);
  });

  it('have exceptions from denials in all projects that are for all projects too, and denials in a project from these', () => {
    const general = rule('deny', 'delete_*');
    const exception = rule('allow', 'delete_repo');
    const inP = rule('allow', '*', { kind: 'principal', id: 'me' }, 'p');
    const mixed = permissions('caller', {}, [general, exception, inP]);
    expect(mixed.decide('call', 'p', remove)).toMatchObject({ isAllowed: true, rule: inP });
    expect(mixed.decide('call', 'q', remove)).toMatchObject({ isAllowed: true, rule: exception });
    expect(mixed.decide('call', 'p', { ...remove, name: 'delete_issue' }).rule).toBe(general);
    expect(mixed.rulesIn('p')!.showsServer(['github'])).toBe(true);
    const denial = rule('deny', 'delete_repo', undefined, 'p');
    const narrowed = permissions('caller', {}, [general, exception, denial]);
    expect(narrowed.decide('call', 'p', remove)).toMatchObject({ isAllowed: false, rule: denial });
  });
});
