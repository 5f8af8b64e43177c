import { describe, expect, it } from 'vitest';
import { importText } from './import.ts';
import { readConfiguration } from './read.ts';

const file = '/home/ada/.vscode/mcp.json';
const importDocument = (document: unknown) => importText(JSON.stringify(document), file);
/** Built here because linters mistake a reference for a forgotten template. */
const ref = (inner: string) => `\${${inner}}`;

describe('importText', () => {
  it('imports servers of Claude Desktop and Cursor unchanged', () => {
    const mcpServers = {
      files: { command: 'npx', args: ['-y', 'server-files'], env: { LEVEL: 'info' } },
      remote: { url: 'https://example.org/mcp', headers: { Authorization: `Bearer ${ref('TOKEN')}` } },
    };
    expect(importDocument({ mcpServers, globalShortcut: '' })).toEqual({
      mcpServers,
      descriptions: {},
      notes: [],
    });
  });

  it('imports servers of VS Code, and turns its inputs into notes', () => {
    const { mcpServers, notes } = importDocument({
      inputs: [{ id: 'api-key', type: 'promptString', description: 'Key of the API', password: true }],
      servers: {
        search: { type: 'stdio', command: 'npx', env: { A: ref('input:api-key'), B: ref('input:other') } },
        here: { command: 'npx', args: [ref('workspaceFolder')], envFile: '.env', dev: { watch: '**' } },
      },
    });
    expect(mcpServers.search).toEqual({
      type: 'stdio',
      command: 'npx',
      env: { A: ref('input:api-key'), B: ref('input:other') },
    });
    expect(notes).toEqual([
      'search: set the variable api_key (Key of the API): Switchboard does not prompt for inputs',
      'search: set the variable other: Switchboard does not prompt for inputs',
      'here: "envFile" was left out: put the variables of that file into "env"',
      'here: "dev" was left out: it has no effect here',
      `here: replace ${ref('workspaceFolder')} with a path: only an editor can resolve it`,
    ]);
  });

  it('translates the keys of other programs', () => {
    const { mcpServers, notes } = importDocument({
      mcpServers: {
        windsurf: { serverUrl: 'https://example.org/mcp', disabledTools: [] },
        cline: { type: 'streamableHttp', url: 'https://example.org/mcp', disabled: true },
        own: { command: './run', cwd: 'tools', disabled: false },
      },
    });
    expect(mcpServers).toEqual({
      windsurf: { url: 'https://example.org/mcp' },
      cline: { type: 'http', url: 'https://example.org/mcp', enabled: false },
      own: { command: '/home/ada/.vscode/tools/run', cwd: '/home/ada/.vscode/tools' },
    });
    expect(notes).toEqual([
      'windsurf: "serverUrl" is called "url" here',
      'windsurf: "disabledTools" was left out: it has no effect here',
      'own: "cwd" was relative to the file and is absolute now: /home/ada/.vscode/tools',
      'own: "command" was relative to the file and is absolute now: /home/ada/.vscode/tools/run',
    ]);
  });

  it('skips an invalid server with a reason, and imports the others', () => {
    const { mcpServers, notes } = importDocument({
      mcpServers: { bad: {}, worse: 1, good: { command: 'x' } },
    });
    expect(Object.keys(mcpServers)).toEqual(['good']);
    expect(notes).toEqual([
      'left out: bad: has neither "command" (to start it) nor "url" (to reach it): add one of them',
      'left out: worse: must be an object with "command" or "url", not a number',
    ]);
  });

  it('turns inputs into secrets for a project, and keeps descriptions there', () => {
    const document = {
      inputs: [{ id: 'api-key', type: 'promptString', description: 'Key of the API' }],
      servers: {
        search: {
          command: 'npx',
          description: 'Finds things',
          args: [ref('input:2nd')],
          env: { A: ref('input:api-key'), B: ref('input:level:-info') },
        },
        remote: { url: 'https://example.org/mcp', headers: { Authorization: `Bearer ${ref('input:t')}` } },
      },
    };
    const options = { target: 'project', folder: undefined } as const;
    expect(importText(JSON.stringify(document), 'the request', options)).toEqual({
      mcpServers: {
        search: { command: 'npx', args: [ref('_2nd')], env: { A: ref('api_key'), B: ref('level:-info') } },
        remote: { url: 'https://example.org/mcp', headers: { Authorization: `Bearer ${ref('t')}` } },
      },
      descriptions: { search: 'Finds things' },
      notes: [
        'search: set the secret _2nd: Switchboard does not prompt for inputs',
        'search: set the secret api_key (Key of the API): Switchboard does not prompt for inputs',
        'search: set the secret level: Switchboard does not prompt for inputs',
        'remote: set the secret t: Switchboard does not prompt for inputs',
      ],
    });
  });

  it('skips relative paths if their folder is unknown', () => {
    const document = {
      mcpServers: {
        relative: { command: './run' },
        inside: { command: 'x', cwd: 'tools' },
        absolute: { command: './run', cwd: '/opt' },
        found: { command: 'npx', cwd: ref('HOME') },
      },
    };
    const options = { target: 'project', folder: undefined } as const;
    const { mcpServers, notes } = importText(JSON.stringify(document), 'the request', options);
    expect(mcpServers).toEqual({
      absolute: { command: '/opt/run', cwd: '/opt' },
      found: { command: 'npx', cwd: ref('HOME') },
    });
    expect(notes).toEqual([
      'left out: relative.command: "./run" is relative, and the folder it belongs to is not known here: make it absolute',
      'left out: inside.cwd: "tools" is relative, and the folder it belongs to is not known here: make it absolute',
      'absolute: "command" was relative to the file and is absolute now: /opt/run',
    ]);
  });

  it('returns a valid configuration', () => {
    const { mcpServers } = importDocument({ servers: { a: { type: 'streamable-http', url: 'http://x' } } });
    const { configuration, warnings } = readConfiguration(JSON.stringify({ mcpServers }), '/etc/mcp.json');
    expect(configuration.servers).toHaveLength(1);
    expect(warnings).toEqual([]);
  });
});
