import { expect, it } from 'vitest';
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
  const left = await runWith({ [`DELETE ${path}`]: null }, 'group', 'leave', 'builders', 'research/ci');
  expect(left.stdout).toBe('research/ci is not in the group builders\n');
  const removed = await runWith({ 'DELETE /groups/builders': null }, 'group', 'rm', 'builders');
  expect(removed.stdout).toBe('removed group builders\n');
});
