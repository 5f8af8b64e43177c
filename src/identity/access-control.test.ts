import { expect, it } from 'vitest';
import { AccessControl } from './access-control.ts';
import { Permissions } from './permissions.ts';
import { Principal } from './principal.ts';
import type { Action, Role } from './roles.ts';

const research = { id: 'p1', name: 'research' };

function refusal(action: Action, project: typeof research | undefined, name = 'ci'): string {
  const byProject = new Map<string, Role>([['p1', 'viewer']]);
  const permissions = new Permissions({ everywhere: undefined, byProject }, []);
  const sender = { principal: new Principal('key', 'k1', name, permissions), address: undefined };
  try {
    new AccessControl(() => {}).authorize(sender, action, project);
  } catch (error) {
    return (error as Error).message.replace(/^.*\. /, '');
  }
  return 'it was allowed';
}

it('who lacks a role is told who can grant it, and how', () => {
  const how = 'can grant it with: switchboard role grant';
  expect(refusal('manage', research)).toBe(`An owner ${how} owner ci -P research`);
  expect(refusal('administer', research)).toBe(`An administrator ${how} admin ci -P research`);
  expect(refusal('operate', undefined)).toBe(`An administrator ${how} operator ci`);
  expect(refusal('call', research, "Ann's laptop")).toBe(
    `An owner ${how} caller 'Ann'\\''s laptop' -P research`,
  );
});
