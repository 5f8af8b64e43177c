import { describe, expect, it } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';
import type { GrantView } from '../../api/access-views.ts';

const research = { id: '0190f3a0-0000-7000-8000-000000000002', name: 'research' };

function grant(id: string, holder: GrantView['holder'], project: GrantView['project'] = null): GrantView {
  return { id, holder, project, role: 'caller', created_at: '2030-01-01T00:00:00.000Z' };
}

const key = { kind: 'principal', id: 'k1', name: 'ci' } as const;
const group = { kind: 'group', id: 'g1', name: 'builders' } as const;
const grants = [
  grant('1', key),
  grant('2', { ...key, id: 'k2' }),
  grant('3', key, research),
  grant('4', group),
];

describe('switchboard role', () => {
  it('lists and grants roles', async () => {
    const { stdout } = await runWith({ 'GET /grants': { grants } }, 'role', 'ls');
    expect(stdout).toMatch(/^ci +caller +in all projects$/m);
    expect(stdout).toMatch(/^group:builders +caller +in all projects$/m);
    const answers = { 'PUT /grants': grants[2]! };
    const done = await runWith(answers, 'role', 'grant', 'caller', 'ci', '-P', 'research');
    expect(done.stdout).toBe('ci has the role caller in research\n');
    expect(done.requests).toEqual(['PUT /grants {"principal":"ci","role":"caller","project":"research"}']);
    const toGroup = await runWith(answers, 'role', 'grant', 'caller', 'group:builders');
    expect(toGroup.requests).toEqual(['PUT /grants {"group":"builders","role":"caller"}']);
  });

  it.each([
    [['ci'], '1'],
    [['ci', '-P', 'research'], '3'],
    [['ci', '-P', research.id], '3'],
    [['group:builders'], '4'],
  ])('revokes the role of %s', async (words, id) => {
    const query = words.includes('-P') ? `?project=${words.at(-1)}` : '';
    const answers = {
      'GET /keys/ci': { id: 'k1' },
      [`GET /grants${query}`]: { grants },
      [`DELETE /grants/${id}`]: null,
    };
    const { code, stdout } = await runWith(answers, 'role', 'revoke', 'caller', ...words);
    expect([code, stdout]).toEqual([0, expect.stringContaining('no longer has the role caller')]);
  });

  it('revokes no other role', async () => {
    const answers = { 'GET /keys/ci': { id: 'k1' }, 'GET /grants': { grants } };
    const { code, stderr } = await runWith(answers, 'role', 'revoke', 'owner', 'ci');
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('ci was not given the role owner in all projects'),
    ]);
  });

  it('shows what each role may do', async () => {
    const roles = [
      { role: 'viewer', actions: ['see'] },
      { role: 'caller', actions: ['see', 'call'] },
    ];
    const actions = [
      { action: 'see', role: 'viewer', meaning: 'see it' },
      { action: 'call', role: 'caller', meaning: 'call tools' },
    ];
    const { stdout } = await runWith({ 'GET /roles': { roles, actions } }, 'role', 'table');
    expect(stdout.split('\n')).toEqual([
      '      viewer  caller',
      'see   yes     yes     may see it',
      'call  –       yes     may call tools',
      '',
    ]);
  });
});
