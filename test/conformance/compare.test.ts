import { expect, test } from 'vitest';
import { complaints, lostChecks, passedChecks } from './compare.ts';
import type { Check } from './run.ts';

const direct: Check[] = [
  check('ping', 'ping', 'SUCCESS'),
  check('ping', 'request-sent', 'INFO'),
  check('tools', 'tools-list', 'SUCCESS'),
  check('tools', 'tools-list', 'SUCCESS'),
];

test('no check is lost when every check succeeds again', () => {
  expect(passedChecks(direct)).toEqual(['ping / ping', 'tools / tools-list']);
  expect(lostChecks(direct, direct)).toEqual([]);
});

test('a check is lost when it fails once or is not reported', () => {
  const through = [
    check('tools', 'tools-list', 'SUCCESS'),
    check('tools', 'tools-list', 'FAILURE', 'a tool has no name'),
  ];
  expect(lostChecks(direct, through)).toEqual([
    'ping / ping: missing, the check was not reported',
    'tools / tools-list: FAILURE, a tool has no name',
  ]);
});

test('a failure under an id that only failed runs have explains missing checks', () => {
  const through = [
    check('ping', 'ping', 'SUCCESS'),
    check('tools', 'scenario-timeout', 'FAILURE', 'it took too long'),
  ];
  expect(lostChecks(direct, through)).toEqual([
    'tools / scenario-timeout: FAILURE, it took too long',
    'tools / tools-list: missing, the check was not reported',
  ]);
});

test('an exception accepts the status that it names and no other', () => {
  const exception = { scenario: 'ping', id: 'ping', status: 'INFO', why: 'it is only a sample' } as const;
  const tools = check('tools', 'tools-list', 'SUCCESS');
  expect(lostChecks(direct, [tools, check('ping', 'ping', 'INFO')], [exception])).toEqual([]);
  expect(lostChecks(direct, [tools, check('ping', 'ping', 'WARNING', 'slow')], [exception])).toEqual([
    'ping / ping: WARNING, slow',
  ]);
  expect(lostChecks(direct, [tools], [exception])).toHaveLength(1);
});

test('complaints are failures and warnings', () => {
  expect(complaints([...direct, check('ping', 'late', 'WARNING', 'slow')])).toEqual([
    'ping / late: WARNING, slow',
  ]);
});

function check(scenario: string, id: string, status: Check['status'], message = ''): Check {
  return { scenario, id, status, message };
}
