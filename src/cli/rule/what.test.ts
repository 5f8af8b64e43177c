import { expect, it } from 'vitest';
import { readWhat, whatText } from './what.ts';

it.each([
  ['*', { server: '*', name: '*' }],
  ['github/*', { server: 'github', name: '*' }],
  ['tool:*', { kind: 'tool', server: '*', name: '*' }],
  ['tool:github/delete_*', { kind: 'tool', server: 'github', name: 'delete_*' }],
  ['*/delete_*', { server: '*', name: 'delete_*' }],
  ['resource:files/file:///secret/*', { kind: 'resource', server: 'files', name: 'file:///secret/*' }],
  ['files/file:///secret/*', { server: 'files', name: 'file:///secret/*' }],
  ['prompt:notes/a/b', { kind: 'prompt', server: 'notes', name: 'a/b' }],
])('a rule about %s', (text, what) => {
  expect(readWhat(text)).toEqual(what);
});

it.each(['', 'github', 'github/', '/x', 'tool:', 'tool:github', 'tools:github/x', 'file:///secret/*'])(
  'a rule cannot be about %j',
  (text) => {
    expect(() => readWhat(text)).toThrow('Write [kind:]server/name');
  },
);

it.each([
  [null, '*', '*', 'everything'],
  ['tool', '*', '*', 'every tool'],
  ['prompt', 'notes', '*', 'prompt:notes/*'],
  [null, '*', 'x', '*/x'],
] as const)('shows %s %s/%s', (kind, server, name, text) => {
  expect(whatText({ kind, server, name })).toBe(text);
});
