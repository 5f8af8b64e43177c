import { expect, it } from 'vitest';
import { MAX_PROBLEMS } from '../../config/problems.ts';
import { checkStorable } from './body.ts';

it('stops searching once it has found as many problems as it reports', () => {
  let looked = 0;
  const value = Array.from({ length: 10 * MAX_PROBLEMS });
  for (const index of value.keys()) {
    Object.defineProperty(value, index, {
      enumerable: true,
      get() {
        looked++;
        return '\0';
      },
    });
  }
  expect(() => checkStorable({ first: value, second: value })).toThrow(
    expect.objectContaining({ code: 'invalid_input' }),
  );
  expect(looked).toBe(MAX_PROBLEMS);
});
