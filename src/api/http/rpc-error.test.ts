import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { httpStatusOf, OTHER_STATUS, rpcStatuses } from './rpc-error.ts';

const docs = readFileSync(new URL('../../../docs/hosting.md', import.meta.url), 'utf8');

describe("the HTTP status of a server's error", () => {
  it.each([
    [-32700, 502],
    [-32600, 502],
    [-32601, 404],
    [-32602, 400],
    [-32603, 502],
    [-32002, 404],
    [-32000, 502],
    [-32001, 502],
    [-32042, 502],
    [-32099, 502],
    [-32100, 422],
    [-31999, 422],
    [-32604, 422],
    [0, 422],
    [1, 422],
    [-1, 422],
    [1.5, 422],
    [Number.NaN, 422],
  ])('follows its code: %d becomes %d', (code, status) => {
    expect(httpStatusOf(code)).toBe(status);
  });

  it('matches docs/hosting.md', () => {
    const rows = rpcStatuses.map(({ from, to, status, meaning }) => {
      const codes = from === to ? `${from}` : `${to} to ${from}`;
      return `| ${codes} | ${status} | ${meaning} |`;
    });
    const documented = docs.split('\n').filter((line) => /^\| (-32\d{3}|any other)/.test(line));
    expect(documented).toEqual([
      ...rows,
      `| any other | ${OTHER_STATUS} | A code that the server defines itself |`,
    ]);
  });
});
