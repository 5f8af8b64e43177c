import { describe, expect, it } from 'vitest';
import { OutputTail } from './output-tail.ts';

function summary(text: string): string {
  const tail = new OutputTail();
  for (const line of text.split('\n')) tail.add(line);
  return tail.summary;
}

it.each([
  ['', ''],
  ['usage: server --token TOKEN', 'usage: server --token TOKEN'],
  ['listening …\nFATAL: no token\nbye', 'FATAL: no token'],
  [
    "throw new Error('boom');\n^\n\nError: boom\n    at run (a.js:1:7)\n    code: 'ERROR'\n}\n\nNode.js v26.0.0",
    'Error: boom',
  ],
  ['Traceback (most recent call last):\n  File "a.py", line 1\nValueError: bad', 'ValueError: bad'],
  [
    [
      'npm error code E404',
      'npm error 404 Not Found - GET https://packages.example/no',
      'npm error 404',
      "npm error 404  'no@*' is not in this registry.",
      'npm error 404',
      'npm error 404 Note that you can also install from a',
      'npm error 404 tarball, folder, http url, or git folder.',
      'npm error A complete log of this run can be found in: /home/ada/.npm/_logs/a.log',
    ].join('\n'),
    "npm error code E404 | npm error 404 Not Found - GET https://packages.example/no | npm error 404  'no@*' is not in this registry.",
  ],
  [
    "docker: Error response from daemon: no such image.\n\nRun 'docker run --help' for more information",
    'docker: Error response from daemon: no such image.',
  ],
  ["unknown flag: --nme\n\nRun 'docker run --help' for more information", 'unknown flag: --nme'],
  ['no token\nFailed to request initial roots from client: McpError', 'no token'],
  ['Failed to request initial roots from client', 'Failed to request initial roots from client'],
  ['one\ntwo\nthree\nfour', 'two | three | four'],
  [`${'x'.repeat(600)}\nlast`, 'last'],
  ['y'.repeat(3_000), 'y'.repeat(3_000)],
])('summarizes %j as %j', (text, expected) => {
  expect(summary(text)).toBe(expected);
});

it('ignores old failures', () => {
  expect(summary(`Error: old\n${'still working\n'.repeat(40)}bye`)).toBe(
    'still working | still working | bye',
  );
});

describe('the text', () => {
  it('contains as many whole lines as fit into 2,000 characters', () => {
    const tail = new OutputTail();
    expect(tail.text).toBe('');
    for (let count = 1; count <= 40; count++) tail.add(`${count} ${'x'.repeat(96)}`);
    expect(tail.text.length).toBeLessThanOrEqual(2_000);
    expect(tail.text.split('\n')).toHaveLength(20);
    expect(tail.text.startsWith('21 x')).toBe(true);
    expect(tail.text.endsWith(`40 ${'x'.repeat(96)}`)).toBe(true);
  });

  it('is the end of the last line if that alone is too long', () => {
    const tail = new OutputTail();
    tail.add('short');
    tail.add(`${'x'.repeat(3_000)}!`);
    expect(tail.text).toBe(`${'x'.repeat(1_999)}!`);
  });

  it('leaves out empty lines', () => {
    const tail = new OutputTail();
    for (const line of ['one', '', '  ', 'two']) tail.add(line);
    expect(tail.text).toBe('one\ntwo');
  });
});
