import { describe, expect, it } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';
import type { RuleView } from '../../api/access-views.ts';

const rule: RuleView = {
  ...{ id: 'r12345678', text: '', effect: 'deny', project: null, subject: { kind: 'everyone' } },
  ...{ kind: 'tool', server: 'github', name: 'delete_*', read_only: null, destructive: true },
  created_at: '2030-01-01T00:00:00.000Z',
};

async function bodyOf(...words: string[]): Promise<unknown> {
  const { requests } = await runWith({ 'POST /rules': rule }, 'rule', ...words);
  return JSON.parse(requests[0]!.replace('POST /rules ', ''));
}

describe('switchboard rule', () => {
  it('lists rules', async () => {
    const subject = { kind: 'group', id: 'g1', name: 'builders' } as const;
    const project = { id: 'p1', name: 'research' };
    const other: RuleView = { ...rule, kind: null, subject, project, read_only: false, destructive: null };
    const { stdout } = await runWith({ 'GET /rules': { rules: [rule, other] } }, 'rule', 'ls');
    expect(stdout.split('\n')).toEqual([
      'r12345678  deny  for everyone        tool:github/delete_*  in all projects  destructive',
      'r12345678  deny  for group:builders  github/delete_*       in research      not read-only',
      '',
    ]);
  });

  it('adds rules', async () => {
    const { stdout } = await runWith({ 'POST /rules': rule }, 'rule', 'deny', 'tool:github/delete_*');
    expect(stdout).toBe(
      'added rule r12345678: deny tool:github/delete_* for everyone in all projects destructive\n',
    );
    expect(
      await bodyOf('deny', 'tool:github/delete_*', '--for', 'role:caller', '-P', 'research', '--destructive'),
    ).toEqual({
      ...{ effect: 'deny', kind: 'tool', server: 'github', name: 'delete_*' },
      ...{ subject: { role: 'caller' }, project: 'research', destructive: true },
    });
    expect(await bodyOf('allow', '*', '--for', 'research/ci', '--not-read-only')).toEqual({
      ...{ effect: 'allow', server: '*', name: '*', subject: { principal: 'research/ci' }, read_only: false },
    });
    expect(await bodyOf('allow', 'a/b', '--for', 'group:builders')).toMatchObject({
      subject: { group: 'builders' },
    });
  });

  it('says what it added, without anything that is not there', async () => {
    const all = { ...rule, kind: null, server: '*', name: '*', destructive: null };
    const { stdout } = await runWith({ 'POST /rules': all }, 'rule', 'deny', '*');
    expect(stdout).toBe('added rule r12345678: deny everything for everyone in all projects\n');
  });

  it('says how to name a group, if there is no such key', async () => {
    const { code, stderr } = await runWith({}, 'rule', 'deny', 'a/b', '--for', 'support');
    expect(code).toBe(1);
    expect(stderr).toMatch(/ For a group, write group:support\.\n$/);
  });

  it.each([
    ['deny', 'github'],
    ['deny', '*', '--for', 'role:king'],
    ['deny', '*', '--read-only', '--not-read-only'],
  ])('rejects %s %s %s', async (...words) => {
    expect(await runWith({}, 'rule', ...words)).toMatchObject({ code: 2, requests: [] });
  });

  it('removes rules', async () => {
    const { stdout } = await runWith({ 'DELETE /rules/r12345678': null }, 'rule', 'rm', 'r12345678');
    expect(stdout).toBe('removed rule r12345678\n');
  });
});
