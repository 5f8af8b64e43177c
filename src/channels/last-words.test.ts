import { expect, it } from 'vitest';
import { LastWords } from './last-words.ts';

function best(text: string): string {
  const words = new LastWords();
  for (const line of text.split('\n')) words.add(line);
  return words.best;
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
  ['npm error code E404\nnpm error 404 Not Found', 'npm error 404 Not Found'],
])('of %j are %j', (text, words) => {
  expect(best(text)).toBe(words);
});

it('are not those of long ago', () => {
  expect(best(`Error: old\n${'still working\n'.repeat(40)}bye`)).toBe('bye');
});
