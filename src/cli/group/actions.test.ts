import { expect, it, vi } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';

const group = {
  id: 'g1',
  name: 'builders',
  description: 'Ours',
  created_at: '2030-01-01T00:00:00.000Z',
  members: [],
};

it('lists, adds and removes groups, and their members', async () => {
  const members = [{ id: 'k1', kind: 'key', name: 'ci', project: null }];
  const groups = [
    { ...group, members },
    { ...group, name: 'empty', description: null },
  ];
  const { stdout } = await runWith({ 'GET /groups': { groups } }, 'group', 'ls');
  expect(stdout).toBe('builders  1 member: ci  Ours\nempty     no members\n');
  const added = await runWith({ 'POST /groups': group }, 'group', 'add', 'builders', '--description', 'Ours');
  expect(added.requests).toEqual(['POST /groups {"name":"builders","description":"Ours"}']);
  const path = '/groups/builders/members/research%2Fci';
  const joined = await runWith({ [`PUT ${path}`]: null }, 'group', 'join', 'builders', 'research/ci');
  expect(joined.stdout).toBe('research/ci is in the group builders\n');
  const removed = await runWith({ 'DELETE /groups/builders': null }, 'group', 'rm', 'builders');
  expect(removed.stdout).toBe('removed group builders\n');
});

it('takes out members alone', async () => {
  const members = [{ id: 'k1', kind: 'key', name: 'ci', project: null }];
  const answers = {
    'GET /groups': { groups: [{ ...group, members }] },
    'DELETE /groups/g1/members/k1': null,
    'GET /keys/research%2Fci': { id: 'k1' },
    'GET /keys/other': { id: 'k2' },
  };
  for (const name of ['ci', 'research/ci']) {
    const left = await runWith(answers, 'group', 'leave', 'builders', name);
    expect(left.stdout).toBe(`${name} is no longer in the group builders\n`);
    vi.restoreAllMocks();
  }
  const other = await runWith(answers, 'group', 'leave', 'builders', 'other');
  expect([other.code, other.stderr]).toEqual([1, 'error: other was not in the group builders.\n']);
  vi.restoreAllMocks();
  const nowhere = await runWith(answers, 'group', 'leave', 'nowhere', 'ci');
  expect([nowhere.code, nowhere.stderr]).toEqual([1, 'error: There is no group "nowhere".\n']);
  vi.restoreAllMocks();
  const nested = await runWith(answers, 'group', 'join', 'builders', 'group:others');
  expect(nested).toMatchObject({ code: 2, requests: [] });
});
