import { expect, it } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';
import type { AuditEntry } from '../../api/access-views.ts';
import { localTime } from '../output.ts';

const at = '2030-01-01T12:00:00.000Z';

function entry(seq: number, otherwise: Partial<AuditEntry> = {}): AuditEntry {
  return {
    ...{ seq, at, actor: { kind: 'key', id: 'k1', name: 'ci' }, address: null, action: 'key.create' },
    ...{ project: { id: 'p1', name: 'research' }, subject: 'ci', outcome: 'done', rule: null, count: 1 },
    ...{ before: null, after: null, previous: '00', hash: '01' },
    ...otherwise,
  };
}

it('shows entries, newest last', async () => {
  const denied = entry(2, {
    outcome: 'denied',
    action: 'call',
    subject: 'tool\u001b[2J x',
    rule: 'r1',
    count: 3,
    address: '::1',
  });
  const path = 'GET /audit?project=research&action=key&limit=50';
  const answers = { [path]: { entries: [denied, entry(1)], next_cursor: null } };
  const { stdout } = await runWith(answers, 'audit', '-P', 'research', '--action', 'key');
  expect(stdout.split('\n')).toEqual([
    `${localTime(at)}  ci  done    key.create  research  ci`,
    `${localTime(at)}  ci  denied  call        research  tool\\u001b[2J x  rule r1, 3 times, from ::1`,
    '',
  ]);
});

it('prints lines of JSON, from as many pages as needed', async () => {
  const answers = {
    'GET /audit?limit=500': { entries: [entry(4), entry(3)], next_cursor: 'c' },
    'GET /audit?limit=500&cursor=c': { entries: [entry(2)], next_cursor: null },
  };
  const { stdout } = await runWith(answers, 'audit', '--json', '-n', '600');
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as AuditEntry).seq),
  ).toEqual([2, 3, 4]);
});

it('verifies the log: the exit code says whether it was changed', async () => {
  const check = { entries: 2, first_seq: 1, last_seq: 2, head: 'ab', problem: null };
  const fine = await runWith({ 'GET /audit/verify': check }, 'audit', '--verify');
  expect(fine).toMatchObject({ code: 0, stdout: '2 entries, none of them changed\nhead ab\n' });
  const changed = { ...check, problem: { seq: 2, why: 'its hash is another one' } };
  const found = await runWith({ 'GET /audit/verify': changed }, 'audit', '--verify');
  expect(found).toMatchObject({
    code: 1,
    stderr: 'The audit log was changed at entry 2: its hash is another one\n',
  });
  expect((await runWith({ 'GET /audit/verify': changed }, 'audit', '--verify', '--json')).code).toBe(1);
});
