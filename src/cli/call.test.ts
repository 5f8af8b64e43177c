import { expect, it } from 'vitest';
import { readArguments } from './call.ts';

it('reads values that are JSON as what they are, and others as text', () => {
  const words = ['a=null', 'b=1', 'c=true', 'd="1"', 'e=[1,2]', 'f=text', 'g=', 'h=x=y'];
  expect(readArguments(words)).toEqual({
    a: null,
    b: 1,
    c: true,
    d: '1',
    e: [1, 2],
    f: 'text',
    g: '',
    h: 'x=y',
  });
});
