import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sourceFiles } from '../test/helpers/source.ts';
import { asSwitchboardError, errorTable, SwitchboardError } from './errors.ts';

const docs = readFileSync(new URL('../docs/errors.md', import.meta.url), 'utf8');

describe('the table of errors', () => {
  it('matches docs/errors.md', () => {
    const rows = Object.entries(errorTable).map(
      ([code, { http, rpc, fault, retryable, meaning }]) =>
        `| \`${code}\` | ${http} | ${rpc} | ${fault} | ${retryable ? 'yes' : 'no'} | ${meaning} |`,
    );
    const documented = docs.split('\n').filter((line) => line.startsWith('| `'));
    expect(documented).toEqual(rows);
  });

  it('has no unused code', () => {
    const users = sourceFiles('src').filter(
      ({ path }) => path !== 'src/errors.ts' && !path.endsWith('.test.ts'),
    );
    const unused = Object.keys(errorTable).filter(
      (code) => code !== 'internal' && !users.some(({ text }) => text.includes(`'${code}'`)),
    );
    expect(unused).toEqual([]);
  });

  it('uses only standard JSON-RPC codes', () => {
    const standard = [-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022];
    for (const { rpc } of Object.values(errorTable)) expect(standard).toContain(rpc);
  });
});

describe('an error', () => {
  it('of another type is converted to a SwitchboardError', () => {
    const cause = new TypeError('oops');
    expect(asSwitchboardError(cause)).toMatchObject({ code: 'internal', message: 'oops', cause });
    expect(asSwitchboardError('text')).toMatchObject({ code: 'internal', message: 'text' });
    const ours = new SwitchboardError('not_found', 'nothing');
    expect(asSwitchboardError(ours)).toBe(ours);
  });
});
