import { expect, it } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';
import type { LimitView } from '../../api/access-views.ts';

const limit: LimitView = {
  ...{ id: 'l12345678', principal: { id: 'k1', name: 'ci' }, project: null, server: 'search', tool: '*' },
  ...{ per_minute: 60, concurrent: 1, shared: false, created_at: '2030-01-01T00:00:00.000Z' },
};

it('lists, sets and removes limits', async () => {
  const shared = {
    ...limit,
    principal: null,
    per_minute: null,
    concurrent: 4,
    shared: true,
    server: null,
    tool: null,
  };
  const { stdout } = await runWith({ 'GET /limits': { limits: [limit, shared] } }, 'limit', 'ls');
  expect(stdout.split('\n')).toEqual([
    'l12345678  60 per minute, 1 call at a time  for ci            in all projects  calls of search/*',
    'l12345678  4 calls at a time                for all together  in all projects',
    '',
  ]);
  const words = ['--per-minute', '60', '--for', 'ci', '-P', 'research', '--tool', 'search/*', '--shared'];
  const { requests } = await runWith({ 'POST /limits': limit }, 'limit', 'set', ...words);
  expect(JSON.parse(requests[0]!.replace('POST /limits ', ''))).toEqual({
    ...{ per_minute: 60, principal: 'ci', project: 'research', server: 'search', tool: '*', shared: true },
  });
  const removed = await runWith({ 'DELETE /limits/l12345678': null }, 'limit', 'rm', 'l12345678');
  expect(removed.stdout).toBe('removed limit l12345678\n');
});

it('says what it set, without anything that is not there', async () => {
  const other = { ...limit, server: null, tool: null };
  const { stdout } = await runWith({ 'POST /limits': other }, 'limit', 'set', '--per-minute', '60');
  expect(stdout).toBe('set limit l12345678: 60 per minute, 1 call at a time for ci in all projects\n');
});

it('is for a key, and its numbers start at 1', async () => {
  const group = await runWith({}, 'limit', 'set', '--per-minute', '1', '--for', 'group:x');
  expect(group).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--for takes a key'),
    requests: [],
  });
  const none = await runWith({}, 'limit', 'set', '--per-minute', '0');
  expect(none.stderr).toContain("option '--per-minute <number>' argument '0' is invalid. Use a whole number");
  expect(none.stderr).toContain('(see: switchboard limit set --help)');
});

it('a limit says what it limits', async () => {
  for (const words of [[], ['--per-minute', 'x'], ['--concurrent', '1', '--tool', 'web']]) {
    expect(await runWith({}, 'limit', 'set', ...words)).toMatchObject({ code: 2, requests: [] });
  }
});
