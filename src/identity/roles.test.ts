import { describe, expect, it } from 'vitest';
import { type Action, actions, higher, type Role, rank, roleMay, roles } from './roles.ts';

describe('roles', () => {
  it('may do what those before them may, and more', () => {
    const may = (role: Role) => (Object.keys(actions) as Action[]).filter((action) => roleMay(role, action));
    expect(Object.fromEntries(roles.map((role) => [role, may(role)]))).toEqual({
      viewer: ['see'],
      caller: ['see', 'call', 'chat'],
      operator: ['see', 'call', 'chat', 'observe', 'operate', 'secrets'],
      owner: ['see', 'call', 'chat', 'observe', 'operate', 'secrets', 'manage'],
      admin: Object.keys(actions),
    });
  });

  it('that are missing or unknown may do nothing', () => {
    for (const action of Object.keys(actions) as Action[]) {
      expect(roleMay(undefined, action)).toBe(false);
      expect(roleMay('root' as Role, action)).toBe(false);
    }
    expect(rank(undefined)).toBeLessThan(rank('viewer'));
  });

  it('can be compared', () => {
    expect(higher('caller', 'owner')).toBe('owner');
    expect(higher('caller', undefined)).toBe('caller');
    expect(higher(undefined, 'viewer')).toBe('viewer');
    expect(higher(undefined, undefined)).toBeUndefined();
  });
});
