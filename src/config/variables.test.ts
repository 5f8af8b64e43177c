import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import type { ServerTransport } from './types.ts';
import { resolveVariables } from './variables.ts';

const stdio = (more: Partial<Extract<ServerTransport, { type: 'stdio' }>>): ServerTransport => ({
  type: 'stdio',
  command: 'run',
  args: [],
  env: {},
  cwd: '/srv',
  ...more,
});
const values: Record<string, string> = {
  HOST: 'example.org',
  TOKEN: 's3cret',
  EMPTY: '',
  my_key: 'k',
  DIR: '/data',
};
const lookup = (name: string) => values[name];
/** Built here because linters mistake a reference for a forgotten template. */
const ref = (inner: string) => `\${${inner}}`;

describe('resolveVariables', () => {
  it('resolves command, args, env and cwd', () => {
    const transport = stdio({
      command: `${ref('DIR')}/run`,
      args: ['--host', `http://${ref('HOST')}:${ref('PORT:-80')}`],
      env: { API: ref('env:TOKEN'), KEY: ref('input:my-key') },
      cwd: ref('DIR'),
    });
    expect(resolveVariables(transport, 'files', lookup)).toEqual({
      type: 'stdio',
      command: '/data/run',
      args: ['--host', 'http://example.org:80'],
      env: { API: 's3cret', KEY: 'k' },
      cwd: '/data',
    });
  });

  it('resolves url and headers', () => {
    const headers = { Authorization: `Bearer ${ref('TOKEN')}` };
    const url = `https://${ref('HOST')}/mcp`;
    expect(resolveVariables({ type: 'http', url, headers }, 'remote', lookup)).toEqual({
      type: 'http',
      url: 'https://example.org/mcp',
      headers: { Authorization: 'Bearer s3cret' },
    });
  });

  it('accepts an empty value, unless there is a default', () => {
    const args = [ref('EMPTY'), ref('EMPTY:-other'), ref('NONE:-')];
    expect(resolveVariables(stdio({ args }), 'files', lookup)).toMatchObject({ args: ['', 'other', ''] });
  });

  it('keeps dollars and other braces, and does not resolve values again', () => {
    const args = ['$HOME', '$$', ref('#array[@]'), ref('config:editor.tab'), ref('NESTED')];
    const nested = (name: string) => (name === 'NESTED' ? ref('TOKEN') : undefined);
    expect(resolveVariables(stdio({ args }), 'files', nested)).toMatchObject({
      args: [...args.slice(0, -1), ref('TOKEN')],
    });
  });

  it('names every missing variable, its location and the server', () => {
    const transport = stdio({ args: [ref('FIRST')], env: { B: `${ref('TOKEN')} ${ref('SECOND')}` } });
    const failure = failureOf(() => resolveVariables(transport, 'files', lookup));
    expect(failure.code).toBe('invalid_config');
    expect(failure.message).toContain(
      'the server "files" needs the variable FIRST (in args[0]), which is not set',
    );
    expect(failure.message).toContain('the variable SECOND (in env.B)');
    expect(failure.message).not.toContain('s3cret');
    expect(failure.data).toEqual({ server: 'files', variables: ['FIRST', 'SECOND'] });
  });

  it('reports that inputs are not supported, and which variable to set', () => {
    const transport = stdio({ env: { KEY: ref('input:api-key') } });
    expect(() => resolveVariables(transport, 'files', lookup)).toThrow(
      'the input api-key (in env.KEY), for which Switchboard does not prompt: set the variable api_key',
    );
  });

  it.each([
    ['a url', { type: 'http', url: ref('TOKEN'), headers: {} }, 'url is not an http or https URL'],
    [
      'a header',
      { type: 'http', url: 'http://x', headers: { K: ref('LINES') } },
      'the header K has a line break',
    ],
    ['a cwd', stdio({ cwd: ref('TOKEN') }), 'cwd is not an absolute path'],
    ['a command', stdio({ command: ref('EMPTY') }), 'command is empty'],
  ] satisfies [string, ServerTransport, string][])(
    'rejects %s that is invalid after resolving, without showing it',
    (_what, transport, message) => {
      const withLines = (name: string) => (name === 'LINES' ? 's3cret\n' : values[name]);
      const failure = failureOf(() => resolveVariables(transport, 'files', withLines));
      expect(failure.message).toContain(message);
      expect(failure.message).not.toContain('s3cret');
    },
  );
});

function failureOf(action: () => unknown): SwitchboardError {
  try {
    action();
  } catch (error) {
    if (error instanceof SwitchboardError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
