import { describe, expect, it } from 'vitest';
import type { RpcMessage } from '../helpers/raw-http.ts';
import type { Target } from './fleet.ts';
import { type PlannedCall, Verdict } from './verdict.ts';

const wild: Target = {
  prefix: 'wild__',
  members: ['wild'],
  isSteady: false,
  isHealthy: false,
  hasLater: true,
};
const calm: Target = { ...wild, prefix: 'calm__', members: ['calm'], isSteady: true, isHealthy: true };
const pair: Target = { ...wild, prefix: 'pair__', members: ['left', 'right'], isSteady: true };

function echo(text: string, name: string): RpcMessage {
  return { id: 1, result: { content: [{ type: 'text', text: JSON.stringify({ text, name, pid: 1 }) }] } };
}

function failure(message: string, code = 'server_unavailable'): RpcMessage {
  return { id: 1, error: { code: -32603, message, data: { code } } };
}

function violationsOf(target: Target, kind: PlannedCall['kind'], ...answers: RpcMessage[]): string {
  const verdict = new Verdict();
  verdict.planned({ kind, target, text: 'mine' });
  verdict.judge({ kind, target, text: 'mine' }, answers);
  return verdict.violations.join('\n');
}

describe('the verdict on a call', () => {
  it.each<[string, Target, PlannedCall['kind'], RpcMessage[]]>([
    ['its own response', wild, 'echo', [echo('mine', 'wild')]],
    ['a response from another server of the group', pair, 'echo', [echo('mine', 'right')]],
    ['an error that names the server', wild, 'echo', [failure('Server "wild" is gone')]],
    ['an error that names the group of a call that cannot be retried', pair, 'count', [failure('"pair"')]],
    ['no response after it was cancelled', wild, 'later', []],
  ])('accepts %s', (_what, target, kind, answers) => {
    expect(violationsOf(target, kind, ...answers)).toBe('');
  });

  it.each<[string, RegExp, Target, PlannedCall['kind'], RpcMessage[]]>([
    ['no response', /was not answered/, wild, 'echo', []],
    ['two responses', /answered 2 times/, wild, 'echo', [echo('mine', 'wild'), echo('mine', 'wild')]],
    ['the response to another call', /another answer/, wild, 'echo', [echo('yours', 'wild')]],
    ['the response of another server', /another answer/, wild, 'echo', [echo('mine', 'calm')]],
    ['an error without a server', /does not say/, wild, 'echo', [failure('something went wrong')]],
    ['an error of a healthy server', /nothing was done/, calm, 'count', [failure('Server "calm" is gone')]],
    [
      'an error while another server is available',
      /nothing was done/,
      pair,
      'echo',
      [failure('"left" is gone')],
    ],
    ['a timeout', /no server hangs/, wild, 'echo', [failure('"wild"', 'call_timeout')]],
    ['a late response', /cancelled and still answered/, wild, 'later', [echo('late', 'wild')]],
  ])('rejects %s', (_what, violation, target, kind, answers) => {
    expect(violationsOf(target, kind, ...answers)).toMatch(violation);
  });
});

it('the verdict on the ledger finds calls that were executed twice, without a caller, or never', () => {
  const verdict = new Verdict();
  for (const text of ['once', 'failed', 'twice', 'never']) {
    const call: PlannedCall = { kind: 'count', target: wild, text };
    verdict.planned(call);
    verdict.judge(call, [text === 'failed' ? failure('Server "wild" is gone') : echo(text, 'wild')]);
  }
  verdict.judgeLedger(['once', 'twice', 'twice', 'strange'].map((key) => JSON.stringify({ key })));
  expect(verdict.violations).toEqual([
    'twice was executed 2 times',
    'strange was executed, but nobody called it',
    'never was answered, but never executed',
  ]);
});
