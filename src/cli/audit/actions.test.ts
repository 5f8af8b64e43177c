import { expect, it, onTestFinished } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';
import type { AuditEntry } from '../../api/access-views.ts';
import { localTime } from '../output.ts';
import { auditRow } from './text.ts';

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

it('exports everything as lines of JSON, unless a number is given', async () => {
  const lines = [entry(1), entry(2)].map((each) => `${JSON.stringify(each)}\n`).join('');
  const { code, stdout } = await runWith(
    {
      'GET /audit?action=key&format=jsonl': (response) => {
        response.writeHead(200, { 'content-type': 'application/jsonl' });
        response.write(lines.slice(0, 30));
        setImmediate(() => response.end(lines.slice(30)));
      },
    },
    ...['audit', '--json', '--action', 'key'],
  );
  expect([code, stdout]).toEqual([0, lines]);
});

it('fails if an export is cut off', async () => {
  const { code, stdout } = await runWith(
    {
      'GET /audit?format=jsonl': (response) => {
        response.writeHead(200, { 'content-type': 'application/jsonl' });
        response.write(`${JSON.stringify(entry(1))}\n`, () => setImmediate(() => response.destroy()));
      },
    },
    ...['audit', '--json'],
  );
  expect([code, stdout.split('\n')[0]]).toEqual([1, JSON.stringify(entry(1))]);
});

it('says what was changed, and where something was denied', async () => {
  const rule = { effect: 'deny', subject: { kind: 'role', role: 'caller' }, server: '*', name: 'x' };
  const denied = { outcome: 'denied', action: 'administer', subject: null } as const;
  const entries = [
    entry(1, { action: 'role.grant', after: { role: 'viewer' } }),
    entry(2, { action: 'rule.create', subject: 'r1', after: { ...rule, kind: 'tool' } }),
    entry(3, { action: 'rule.remove', subject: 'r1', before: { ...rule, name: '*' } }),
    entry(4, { action: 'limit.create', subject: 'l1', after: { perMinute: 6, concurrent: 1, server: 'a' } }),
    entry(5, denied),
    entry(6, { ...denied, project: null }),
  ];
  const page = { entries: entries.toReversed(), next_cursor: null };
  const { stdout } = await runWith({ 'GET /audit?limit=50': page }, 'audit');
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/).at(-1)),
  ).toEqual([
    'ci: role viewer',
    'r1: deny tool:*/x for role:caller',
    'r1: deny everything for role:caller',
    'l1: 6 per minute, 1 call at a time, for each, calls of a/*',
    'the project research',
    'in all projects',
  ]);
});

it('says that there is no such project or key, instead of no entries', async () => {
  const none = { entries: [], next_cursor: null };
  const project = await runWith({ 'GET /audit?project=nope&limit=50': none }, 'audit', '-P', 'nope');
  expect(project).toMatchObject({
    code: 1,
    requests: ['GET /audit?project=nope&limit=50', 'GET /projects/nope'],
  });
  const key = await runWith({ 'GET /audit?principal=nope&limit=50': none }, 'audit', '--principal', 'nope');
  expect(key.requests.at(-1)).toBe('GET /can?principal=nope&action=see');
  expect(key.code).toBe(1);
  const id = '0190f3a0-0000-7000-8000-000000000001';
  const gone = await runWith({ [`GET /audit?principal=${id}&limit=50`]: none }, 'audit', '--principal', id);
  expect(gone).toMatchObject({ code: 0, stdout: 'no entries\n' });
});

it('shows at least one entry', async () => {
  const { code, stderr } = await runWith({}, 'audit', '-n', '0');
  expect(code).toBe(2);
  expect(stderr).toContain(
    "option '-n, --limit <number>' argument '0' is invalid. Use a whole number from 1",
  );
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

it('leaves room for the subject in a narrow terminal', () => {
  const { isTTY, columns } = process.stdout;
  onTestFinished(() => void Object.assign(process.stdout, { isTTY, columns }));
  Object.assign(process.stdout, { isTTY: true, columns: 80 });
  expect(auditRow(entry(1))[0]).toBe(localTime(at).slice(5, 16));
  Object.assign(process.stdout, { columns: 160 });
  expect(auditRow(entry(1))[0]).toBe(localTime(at));
});
