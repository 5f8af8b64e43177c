import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../../errors.ts';
import {
  callQuery,
  newProductOf,
  newProject,
  productManifest,
  projectChanges,
  secretValue,
} from '../inputs.ts';
import { mergeServer } from '../server-changes.ts';
import { type NewServer, newServer, serverChanges } from '../server-input.ts';
import { check } from './check.ts';

const good = { name: 'github', transport: 'stdio', config: { command: 'github-mcp' } };

function problems(judge: () => unknown): string[] {
  try {
    judge();
  } catch (error) {
    if (!(error instanceof SwitchboardError)) throw error;
    expect(error.code).toBe('invalid_input');
    const found = error.data.problems as { path: string; message: string }[];
    return found.map(({ path, message }) => `${path} ${message}`);
  }
  return [];
}

describe('a project', () => {
  it.each(['a', 'My.Project_1-2', 'a'.repeat(64), '...', 'default'])('may be named %s', (name) => {
    expect(check(newProject, { name })).toEqual({ name });
  });

  it.each([
    ['', 'must not be empty'],
    ['a'.repeat(65), 'must not be longer than 64 characters'],
    ['a b', 'must be letters'],
    ['a/b', 'must be letters'],
    ['.', 'must not be "."'],
    ['..', 'must not be "."'],
    ['6F9619FF-8B86-D011-B42D-00CF4FC964FF', 'must not look like an id'],
    [5, 'must be a string, not a number'],
    [null, 'must be a string, not null'],
    [undefined, 'is missing'],
  ])('may not be named %s', (name, message) => {
    expect(problems(() => check(newProject, { name })).join()).toContain(`name ${message}`);
  });

  it('keeps records for some days or forever', () => {
    expect(check(projectChanges, { retention_days: null })).toEqual({ retention_days: null });
    for (const retention_days of [0, 1.5, 36_501, '3'])
      expect(problems(() => check(projectChanges, { retention_days }))).toEqual([
        'retention_days must be a whole number from 1 to 36500',
      ]);
  });
});

it('lists each unknown key of a body once, up to a limit', () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`key${index}`, 1]));
  expect(problems(() => check(newProject, { name: 'a', ...many }))).toHaveLength(100);
  expect(newProject.safeParse({ name: 'a', ...many }).error?.issues.map(({ message }) => message)).toEqual([
    'must have no other keys than "name", "description", "record_payloads", "retention_days", "names"',
  ]);
});

describe('a server', () => {
  it.each([
    [{ ...good, name: '' }, ['name must not be empty']],
    [{ ...good, name: 'a/b' }, ['name must not contain a slash']],
    [{ ...good, name: 'a\nb' }, ['name must not contain a control character']],
    [{ ...good, name: '__proto__' }, ['name must not be one of __proto__, ., ..']],
    [{ ...good, name: 'a'.repeat(129) }, ['name must not be longer than 128 characters']],
    [{ ...good, transport: 'tcp' }, ['transport must be one of "stdio", "sse", "http"']],
    [{ ...good, config: {} }, ['config.command is missing: "stdio" needs it']],
    [{ ...good, config: { command: '  ' } }, ['config.command must not be empty']],
    [
      { ...good, transport: 'http' },
      [
        'config.url is missing: "http" needs it',
        'config.command does not fit the transport "http": remove it',
      ],
    ],
    [
      { ...good, config: { command: 'x', args: 'y', env: { TOKEN: 5 } } },
      [
        'config.args must be a list of strings, not a string',
        'config.env.TOKEN must be a string, not a number: put it in quotes',
      ],
    ],
    [
      { ...good, config: { command: 'x', env: { 'A=B': 'c' } } },
      ['config.env["A=B"] cannot be the name of a variable'],
    ],
    [
      { name: 'x', transport: 'http', config: { url: 'ftp://example.test' } },
      ['config.url must be a URL that starts with http:// or https://'],
    ],
    [
      { name: 'x', transport: 'sse', config: { url: 'http://x', headers: { 'a b': '1', a: 'x\r\ny' } } },
      [
        'config.headers["a b"] cannot be the name of a header',
        'config.headers.a must not contain a line break',
      ],
    ],
    [{ ...good, replicas: 65 }, ['replicas must be a whole number from 1 to 64']],
    [
      { ...good, replicas: 2, isolation: 'session' },
      ['replicas contradicts the isolation "session", where every client has its own process'],
    ],
    [
      { ...good, timeout_ms: 10, max_timeout_ms: 5 },
      ['max_timeout_ms must be at least "timeout_ms", which is 10 here: raise it, or lower "timeout_ms"'],
    ],
    [
      { ...good, labels: { region: ' eu' } },
      ['labels.region must not be empty, contain commas, or start or end with a space'],
    ],
    [{ ...good, prefix: 'a.b' }, ['prefix must be 1 to 64 letters, digits, underscores or hyphens']],
    [{ ...good, enabled: 'yes' }, ['enabled must be true or false, not a string']],
  ])('%j is rejected', (server, expected) => {
    expect(problems(() => check(newServer, server))).toEqual(expected);
  });

  it('rejects unknown keys and suggests the intended ones', () => {
    const unknown = { timeoutMs: 1, desciption: '', type: 'stdio', command: 'x', whatever: 1 };
    expect(
      problems(() => check(newServer, { ...good, ...unknown, config: { command: 'x', arg: [] } })),
    ).toEqual([
      'config.arg is not known here: did you mean "args"?',
      'timeoutMs is not known here: did you mean "timeout_ms"?',
      'desciption is not known here: did you mean "description"?',
      'type is not known here: did you mean "transport"?',
      'command is not known here: did you mean "config.command"?',
      'whatever is not known here: remove it',
    ]);
  });

  it('may refer to variables', () => {
    const config = { url: '$' + '{BASE}/mcp', headers: { authorization: '$' + '{TOKEN}' } };
    expect(check(newServer, { name: 'x', transport: 'http', config })).toMatchObject({ config });
  });

  it('shows no values in error messages', () => {
    const secret = 's3cret';
    const wrong = {
      name: `${secret}/`,
      transport: secret,
      config: { url: secret, command: [secret], env: secret, headers: { a: `${secret}\n` } },
      startup: secret,
      replicas: secret,
      labels: { a: `${secret},` },
      prefix: `${secret}.`,
    };
    expect(problems(() => check(newServer, wrong)).join()).not.toContain(secret);
    expect(problems(() => check(secretValue, { value: [secret] })).join()).not.toContain(secret);
  });
});

describe('an updated server', () => {
  const server: NewServer = {
    name: 'github',
    description: null,
    transport: 'stdio',
    config: { command: 'x' },
    settings: { replicas: 2, group: 'code' },
    enabled: true,
  };

  it('keeps omitted fields and removes those set to null', () => {
    expect(check(serverChanges, { group: null, labels: null })).toEqual({ group: null, labels: null });
    expect(mergeServer(server, { enabled: false, settings: { group: null, timeout_ms: 5 } })).toEqual({
      ...server,
      enabled: false,
      settings: { replicas: 2, timeout_ms: 5 },
    });
  });

  it('is validated as a whole', () => {
    expect(problems(() => mergeServer(server, { transport: 'http', settings: {} }))).toEqual([
      'config.url is missing: "http" needs it',
      'config.command does not fit the transport "http": remove it',
      'replicas needs a "command": add each address as its own server, and give them all the same "group"',
    ]);
    expect(problems(() => mergeServer(server, { settings: { isolation: 'session' } }))).toHaveLength(1);
  });

  it('cannot lose its name', () => {
    expect(problems(() => check(serverChanges, { name: null }))).toEqual(['name must be a string, not null']);
  });
});

describe('a manifest', () => {
  it('names the invalid server and key in its errors', () => {
    const servers = [
      { name: 'one', transport: 'stdio', command: 'a' },
      { name: 'two', transport: 'stdio', url: 'http://x', timeoutMs: 5 },
    ];
    expect(problems(() => check(productManifest, { name: 'kit', version: 1, mcp: { servers } }))).toEqual([
      'version must be a string, not a number: put it in quotes',
      'mcp.servers[1].timeoutMs is not known here: did you mean "timeout_ms"?',
      'mcp.servers[1].command is missing: "stdio" needs it',
      'mcp.servers[1].url does not fit the transport "stdio": remove it',
    ]);
    expect(problems(() => check(productManifest, { name: 'kit', version: '1' }))).toEqual(['mcp is missing']);
  });

  it('may list servers by name, each with its connection under config', () => {
    const servers = {
      crm: { transport: 'stdio', config: { command: 'a', env: { A: 'b' } }, prefix: 'c' },
      far: { transport: 'http', url: 'http://x' },
    };
    const manifest = check(productManifest, { name: 'kit', version: '1', mcp: { servers, more: 1 } });
    expect(newProductOf(manifest)).toMatchObject({
      manifest: {
        mcp: {
          more: 1,
          servers: [
            { name: 'crm', transport: 'stdio', command: 'a', env: { A: 'b' }, prefix: 'c' },
            { name: 'far', transport: 'http', url: 'http://x' },
          ],
        },
      },
      servers: [
        { name: 'crm', config: { command: 'a', env: { A: 'b' } }, settings: { prefix: 'c' } },
        { name: 'far', config: { url: 'http://x' }, settings: {} },
      ],
    });
  });

  it('keeps a server with any name', () => {
    const server = '{"transport": "http", "url": "http://x"}';
    const named = (name: string) => JSON.parse(`{"${name}": ${server}}`) as object;
    const wrong = (servers: unknown) =>
      problems(() => check(productManifest, { name: 'kit', version: '1', mcp: { servers } }));
    expect(wrong(named('__proto__'))).toEqual(['mcp.servers.__proto__ must not be "__proto__"']);
    expect(wrong([{ ...named('x'), name: '__proto__', transport: 'http', url: 'http://x' }])).toContain(
      'mcp.servers[0].name must not be one of __proto__, ., ..',
    );
    expect(wrong(named('constructor'))).toEqual([]);
    const env = JSON.parse('{"__proto__": "a"}') as object;
    expect(problems(() => check(newServer, { ...good, config: { command: 'a', env } }))).toEqual([
      'config.env.__proto__ must not be "__proto__"',
    ]);
  });

  it('names the invalid key in these forms too', () => {
    const wrong = (servers: unknown) =>
      problems(() => check(productManifest, { name: 'kit', version: '1', mcp: { servers } }));
    expect(wrong({ crm: { transport: 'stdio', config: { comand: 'a' } } })).toEqual([
      'mcp.servers.crm.config.comand is not known here: did you mean "command"?',
      'mcp.servers.crm.config.command is missing: "stdio" needs it',
    ]);
    expect(wrong({ crm: { name: 'erp', transport: 'stdio', command: 'a' } })).toEqual([
      'mcp.servers.crm.name must be "crm", the key that the server stands under: remove it',
    ]);
    expect(wrong({ crm: { transport: 7 } })).toEqual([
      'mcp.servers.crm.transport must be one of "stdio", "sse", "http"',
    ]);
    expect(wrong([{ name: 'crm', transport: 'stdio', command: 'a', config: { command: 'b' } }])).toEqual([
      'mcp.servers[0].command belongs inside "config": move it there',
    ]);
    expect(wrong('crm')).toEqual(['mcp.servers must be a list of servers, or an object of servers by name']);
    expect(wrong(undefined)).toEqual(['mcp.servers is missing']);
  });

  it('rejects duplicate names', () => {
    const servers = ['a', 'b', 'a'].map((name) => ({ name, transport: 'stdio', command: 'x' }));
    expect(problems(() => check(productManifest, { name: 'kit', version: '1', mcp: { servers } }))).toEqual([
      'mcp.servers[2].name is a duplicate: each server needs its own name',
    ]);
  });
});

it('ends an error message with one period', () => {
  expect(() => check(callQuery, { stauts: 'ok' })).toThrow(/did you mean "status"\?$/);
  expect(() => check(callQuery, { limit: '0' })).toThrow(/from 1 to 500\.$/);
});

describe('a query for calls', () => {
  it.each([
    [{ limit: '0' }, 'limit must be a whole number from 1 to 500'],
    [{ limit: '501' }, 'limit must be a whole number from 1 to 500'],
    [{ limit: '5x' }, 'limit must be a whole number from 1 to 500'],
    [{ since: 'yesterday' }, 'since must be a time such as 2030-01-31T12:00:00Z'],
    [{ until: '2030-02-30T00:00:00Z' }, 'until must be a time such as 2030-01-31T12:00:00Z'],
    [{ status: 'fine' }, 'status must be one of "ok", "tool_error", "error", "timeout", "cancelled"'],
    [{ server: 'a\0b' }, 'server must not contain a NUL character'],
    [{ stauts: 'ok' }, 'stauts is not known here: did you mean "status"?'],
  ])('%j is rejected', (query, expected) => {
    expect(problems(() => check(callQuery, query))).toEqual([expected]);
  });
});
