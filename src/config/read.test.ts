import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import { describeProblem } from './problems.ts';
import { readConfiguration } from './read.ts';

const file = '/home/ada/mcp.json';
const read = (document: unknown) => readConfiguration(JSON.stringify(document), file);
const defaults = {
  enabled: true,
  startup: 'lazy',
  isolation: 'shared',
  era: 'auto',
  replicas: 1,
  labels: {},
  concurrency: 32,
  timeoutMs: 300_000,
  maxTimeoutMs: 3_600_000,
  idleStopMs: 0,
};
const readServers = (mcpServers: unknown) => read({ mcpServers }).configuration.servers;

describe('the servers of a configuration', () => {
  it('are read from files of Claude Desktop, Claude Code and Cursor', () => {
    const servers = readServers({
      files: { command: 'npx', args: ['-y', 'server-files', '/data'], env: { LEVEL: 'info' } },
      remote: { url: 'https://example.org/mcp', headers: { Authorization: 'Bearer x' } },
    });
    expect(servers).toEqual([
      {
        name: 'files',
        transport: {
          type: 'stdio',
          command: 'npx',
          args: ['-y', 'server-files', '/data'],
          env: { LEVEL: 'info' },
          cwd: '/home/ada',
        },
        ...defaults,
      },
      {
        name: 'remote',
        transport: { type: 'http', url: 'https://example.org/mcp', headers: { Authorization: 'Bearer x' } },
        ...defaults,
      },
    ]);
  });

  it('are read from files and user settings of VS Code', () => {
    const servers = { files: { type: 'stdio', command: 'npx' } };
    expect(read({ servers }).configuration.servers).toHaveLength(1);
    expect(read({ 'editor.tabSize': 2, mcp: { servers } }).configuration.servers).toHaveLength(1);
  });

  it.each([
    [{ url: 'http://x/mcp' }, 'http'],
    [{ url: 'http://x/sse' }, 'http'],
    [{ url: 'http://x/mcp', type: 'http' }, 'http'],
    [{ url: 'http://x/mcp', type: 'streamable-http' }, 'http'],
    [{ url: 'http://x/mcp', type: 'streamableHttp' }, 'http'],
    [{ url: 'http://x/sse', type: 'sse' }, 'sse'],
    [{ command: 'x' }, 'stdio'],
    [{ command: 'x', type: 'stdio' }, 'stdio'],
  ])('%j is reached over %s', (server, type) => {
    expect(readServers({ server })[0]?.transport.type).toBe(type);
  });

  it('accept our settings, and the disabled key of other programs', () => {
    const [own, off] = readServers({
      own: {
        command: 'x',
        prefix: 'me',
        enabled: false,
        startup: 'parallel',
        isolation: 'session',
        era: 'legacy',
      },
      off: { command: 'x', disabled: true },
    });
    expect(own).toMatchObject({ prefix: 'me', enabled: false, startup: 'parallel', isolation: 'session' });
    expect(own).toMatchObject({ era: 'legacy' });
    expect(off).toMatchObject({ enabled: false });
  });

  it('have replicas, labels and limits', () => {
    const wanted = {
      startup: 'sequential',
      group: 'search',
      replicas: 64,
      labels: { region: 'eu', 'tier.example/level': '2', gpu: 'true' },
      concurrency: 1,
      timeoutMs: 5_000,
      maxTimeoutMs: 5_000,
      idleStopMs: 60_000,
    };
    const labels = { region: 'eu', 'tier.example/level': 2, gpu: true };
    expect(readServers({ own: { command: 'x', ...wanted, labels } })[0]).toMatchObject(wanted);
  });

  it('may share a group and its name', () => {
    const servers = readServers({
      search: { command: 'x', group: 'search', isolation: 'session', replicas: 1 },
      remote: { url: 'http://x/mcp', group: 'search', replicas: 1 },
      alone: { command: 'x' },
    });
    expect(servers.map(({ group }) => group)).toEqual(['search', 'search', undefined]);
  });

  it('have a maximum timeout of at least their timeout', () => {
    const { servers } = read({
      mcpServers: { slow: { command: 'x', timeoutMs: 90_000 }, own: { command: 'x', maxTimeoutMs: 10_000 } },
      switchboard: { timeoutMs: 5_000, maxTimeoutMs: 60_000 },
    }).configuration;
    expect(servers).toMatchObject([
      { timeoutMs: 90_000, maxTimeoutMs: 90_000 },
      { timeoutMs: 5_000, maxTimeoutMs: 10_000 },
    ]);
  });

  it.each([
    [{ command: 'npx' }, 'npx', '/home/ada'],
    [{ command: './run.sh' }, '/home/ada/run.sh', '/home/ada'],
    [{ command: 'bin/run', cwd: 'servers' }, '/home/ada/servers/bin/run', '/home/ada/servers'],
    [{ command: '/bin/run', cwd: '/srv' }, '/bin/run', '/srv'],
    [{ command: `\${HOME}/run`, cwd: `\${HOME}` }, `\${HOME}/run`, `\${HOME}`],
  ])('have paths relative to the file: %j', (server, command, cwd) => {
    expect(readServers({ server })[0]?.transport).toMatchObject({ command, cwd });
  });

  it('may have numbers as text, and null to unset a variable', () => {
    const [server] = readServers({
      server: { command: 'x', args: ['--port', 80], env: { PORT: 80, DEBUG: null } },
    });
    expect(server?.transport).toMatchObject({ args: ['--port', '80'], env: { PORT: '80' } });
  });
});

describe('the settings of a configuration', () => {
  it('have defaults', () => {
    expect(read({ mcpServers: {} }).configuration.settings).toEqual({
      naming: 'on-conflict',
      names: 'model-safe',
      separator: '__',
      discoveryWaitMs: 3_000,
      pageSize: 0,
      connectTimeoutMs: 60_000,
      maxMessageBytes: 67_108_864,
      maxReplayBytes: 67_108_864,
      replayMs: 60_000,
      localAccess: 'user',
      inheritNetwork: true,
      allowedOrigins: [],
      maxCatalogItems: 25_000,
      maxInstructionsBytes: 8_192,
      maxListItems: 20_000,
      maxListBytes: 16 * 2 ** 20,
      maxConnections: 10_000,
      slowClientMs: 30_000,
      maxSessions: 10_000,
      maxSessionsPerPrincipal: 1_000,
      auditDays: 365,
      trustedProxies: [],
      sessionIdleMs: 1_800_000,
      maxHeldCalls: 1_000,
      inputWaitMs: 300_000,
      keepAliveMs: 5_000,
      shutdownGraceMs: 10_000,
      queueLimit: 1_000,
      onStartFailure: 'continue',
      backoffFirstMs: 1_000,
      backoffMaxMs: 30_000,
      breakerFailures: 3,
      breakerOpenMs: 60_000,
      ejectAfter: 5,
      ejectMs: 30_000,
      hosting: {
        runtimes: { gvisor: 'runsc' },
        allow: [],
        volumeImages: true,
        callTimeoutMs: 30_000,
        heartbeatMs: 30_000,
        heartbeatTimeoutMs: 10_000,
      },
      chat: { model: 'claude-sonnet-5-5' },
    });
  });

  it('configure the model of chats', () => {
    const chat = { baseUrl: 'http://127.0.0.1:9', model: 'claude-haiku-5-5' };
    expect(read({ mcpServers: {}, switchboard: { chat } }).configuration.settings.chat).toEqual(chat);
    const { message } = failureOf({ mcpServers: {}, switchboard: { chat: { baseUrl: 'claude', key: 'x' } } });
    expect(message).toContain('switchboard.chat.baseUrl: must start with http:// or https://');
    expect(message).toContain('key');
  });

  it('configure the provider of hosted servers', () => {
    const hosting = { engine: '/run/docker.sock', runtimes: { firecracker: 'kata-fc' }, allow: ['process'] };
    expect(read({ mcpServers: {}, switchboard: { hosting } }).configuration.settings.hosting).toMatchObject({
      ...hosting,
      runtimes: { gvisor: 'runsc', firecracker: 'kata-fc' },
    });
    const wrong = { engine: 'docker.sock', allow: ['gvisor'], runtime: 'runsc' };
    const { message } = failureOf({ mcpServers: {}, switchboard: { hosting: wrong } });
    expect(message).toContain('switchboard.hosting.engine: must be the path of a socket');
    expect(message).toContain('switchboard.hosting.allow[0]: must be one of "docker", "process"');
    expect(message).toContain('runtime');
  });

  it('are read from the file, and startup is the default of its servers', () => {
    const { configuration } = read({
      mcpServers: { eager: { command: 'x' }, lazy: { command: 'x', startup: 'lazy' } },
      switchboard: { naming: 'always', separator: '-', startup: 'parallel' },
    });
    expect(configuration.settings).toMatchObject({ naming: 'always', separator: '-' });
    expect(configuration.servers.map(({ startup }) => startup)).toEqual(['parallel', 'lazy']);
  });

  it('give servers their limits, unless they set their own', () => {
    const limits = { concurrency: 4, timeoutMs: 7_200_000, idleStopMs: 1_000 };
    const { servers } = read({
      mcpServers: { plain: { command: 'x' }, own: { command: 'x', concurrency: 8, idleStopMs: 0 } },
      switchboard: limits,
    }).configuration;
    expect(servers).toMatchObject([
      { ...limits, maxTimeoutMs: 7_200_000 },
      { ...limits, maxTimeoutMs: 7_200_000, concurrency: 8, idleStopMs: 0 },
    ]);
  });

  it('configure how failures are handled', () => {
    const switchboard = {
      onStartFailure: 'abort',
      queueLimit: 1_000_000,
      breakerFailures: 1,
      breakerOpenMs: 10,
      ejectAfter: 0,
      ejectMs: 10,
    };
    const { settings } = read({
      mcpServers: {},
      switchboard: { ...switchboard, backoffFirstMs: 60_000 },
    }).configuration;
    expect(settings).toMatchObject({ ...switchboard, backoffFirstMs: 60_000, backoffMaxMs: 60_000 });
  });
});

describe('an allowed origin', () => {
  it.each([
    '*',
    'null',
    'localhost:6274',
    'http://localhost:6274/',
    'http://LOCALHOST:6274',
    'http://localhost:80',
    'http://*.example.com',
    'file:///x',
  ])('cannot be %s', (origin) => {
    const { message } = failureOf({ mcpServers: {}, switchboard: { allowedOrigins: [origin] } });
    expect(message).toContain('switchboard.allowedOrigins[0]: must be an origin');
  });

  it('is that of a page or of a browser extension', () => {
    const allowedOrigins = [
      'http://localhost:6274',
      'https://inspector.example',
      'chrome-extension://abcdef',
    ];
    const { settings } = read({ mcpServers: {}, switchboard: { allowedOrigins } }).configuration;
    expect(settings).toMatchObject({ allowedOrigins });
  });
});

describe('an invalid configuration', () => {
  it('is rejected with all problems and their positions', () => {
    const failure = failureOf({
      mcpServers: {
        github: { command: 'npx', args: ['-y', true], env: { TOKEN: ['s3cret'] } },
        'my server': { command: 'x', url: 'http://x' },
        nothing: {},
        list: [],
      },
      switchboard: { naming: 'never', seperator: '.', pageSize: -1 },
    });
    expect(failure.code).toBe('invalid_config');
    expect(failure.message.split('\n')).toEqual([
      '/home/ada/mcp.json:',
      '  switchboard.seperator: there is no such setting: did you mean "separator"?',
      '  switchboard.naming: must be one of "on-conflict", "always", "last-wins"',
      '  switchboard.pageSize: must be a whole number from 0 to 1000000',
      '  mcpServers.github.args[1]: must be a string, not a boolean: put it in quotes',
      '  mcpServers.github.env.TOKEN: must be a string, not a list',
      '  mcpServers["my server"].url: there is a "command" too: a server is either started or reached at a URL; remove one of them',
      '  mcpServers.nothing: has neither "command" (to start it) nor "url" (to reach it): add one of them',
      '  mcpServers.list: must be an object with "command" or "url", not a list',
    ]);
    expect(failure.data).toMatchObject({ file, problems: { length: 8 } });
  });

  it.each([
    [{ command: ' ' }, 'mcpServers.s.command: must not be empty'],
    [{ command: 'x', type: 'http' }, 'mcpServers.s.type: "http" needs a "url"'],
    [{ url: 'http://x', type: 'stdio' }, 'mcpServers.s.type: "stdio" needs a "command"'],
    [{ url: 'http://x', type: 'ws' }, 'mcpServers.s.type: must be one of "stdio", "http"'],
    [{ url: 'localhost:80' }, 'mcpServers.s.url: must be a URL that starts with http://'],
    [
      { url: 'http://x', headers: { 'a b': 'c' } },
      'mcpServers.s.headers["a b"]: cannot be the name of a header',
    ],
    [{ url: 'http://x', headers: { a: 'b\nc' } }, 'mcpServers.s.headers.a: must not contain a line break'],
    [{ command: 'x', env: { 'A=B': 'c' } }, 'mcpServers.s.env["A=B"]: cannot be the name of a variable'],
    [{ command: 'x', env: [] }, 'mcpServers.s.env: must be an object of names and values, not a list'],
    [{ command: 'x', args: '--all' }, 'mcpServers.s.args: must be a list of strings, not a string'],
    [{ command: 'x', enabled: 'no' }, 'mcpServers.s.enabled: must be true or false, not a string'],
    [{ command: 'x', enabled: true, disabled: true }, 'mcpServers.s.disabled: contradicts "enabled"'],
    [{ command: 'x', prefix: '' }, 'mcpServers.s.prefix: must not be empty'],
    [{ command: 'x\0' }, 'mcpServers.s.command: must not contain a NUL character'],
    [
      { command: 'x', startup: 'eager' },
      'mcpServers.s.startup: must be one of "lazy", "sequential", "parallel"',
    ],
    [{ command: 'x', group: 'a/b' }, "mcpServers.s.group: the group's name must not contain a slash"],
    [{ command: 'x', group: 7 }, 'mcpServers.s.group: must be a string, not a number: put it in quotes'],
    [{ command: 'x', replicas: 65 }, 'mcpServers.s.replicas: must be a whole number from 1 to 64'],
    [
      { url: 'http://x', replicas: 2 },
      'mcpServers.s.replicas: needs a "command": add each address as its own server',
    ],
    [
      { command: 'x', replicas: 2, isolation: 'session' },
      'mcpServers.s.replicas: contradicts the isolation "session"',
    ],
    [
      { command: 'x', labels: ['eu'] },
      'mcpServers.s.labels: must be an object of names and values, not a list',
    ],
    ...['', ' eu', 'eu,us'].map((region): [object, string] => [
      { command: 'x', labels: { region } },
      'mcpServers.s.labels.region: must not be empty, contain commas, or start or end with a space',
    ]),
    [{ command: 'x', labels: { region: null } }, 'mcpServers.s.labels.region: must be a string, not null'],
    [{ command: 'x', labels: { 'a=b': 'c' } }, 'mcpServers.s.labels["a=b"]: cannot be the name of a label'],
    [{ command: 'x', concurrency: 0 }, 'mcpServers.s.concurrency: must be a whole number from 1 to 100000'],
    [{ command: 'x', timeoutMs: '5s' }, 'mcpServers.s.timeoutMs: must be a whole number from 1 to'],
    [{ command: 'x', idleStopMs: -1 }, 'mcpServers.s.idleStopMs: must be a whole number from 0 to'],
    [
      { command: 'x', timeoutMs: 30_000, maxTimeoutMs: 10_000 },
      'mcpServers.s.maxTimeoutMs: must be at least "timeoutMs", which is 30000 here',
    ],
  ])('reports the problem with %j', (server, message) => {
    expect(failureOf({ mcpServers: { s: server } }).message).toContain(message);
  });

  it.each([
    [{ queueLimit: 0 }, 'switchboard.queueLimit: must be a whole number from 1 to 1000000'],
    [{ onStartFailure: 'stop' }, 'switchboard.onStartFailure: must be one of "continue", "abort"'],
    [{ startup: 'eager' }, 'switchboard.startup: must be one of "lazy", "sequential", "parallel"'],
    [{ breakerFailures: 0 }, 'switchboard.breakerFailures: must be a whole number from 1 to 1000'],
    [{ timeoutMs: 9, maxTimeoutMs: 8 }, 'maxTimeoutMs: must be at least "timeoutMs", which is 9 here'],
    [{ backoffMaxMs: 999 }, 'backoffMaxMs: must be at least "backoffFirstMs", which is 1000 here'],
    [{ ejectAfterMs: 1 }, 'switchboard.ejectAfterMs: there is no such setting: did you mean "ejectAfter"?'],
  ])('reports the problem with the settings %j', (switchboard, message) => {
    expect(failureOf({ mcpServers: {}, switchboard }).message).toContain(message);
  });

  it('reports all problems at once, including contradicting limits', () => {
    const mcpServers = {
      a: { command: 'x', timeoutMs: 9, maxTimeoutMs: 8 },
      b: { args: 'x', maxTimeoutMs: 6 },
      c: { command: 'x', timeoutMs: '5s', maxTimeoutMs: 1 },
    };
    const switchboard = { queueLimit: 0, timeoutMs: 7, maxTimeoutMs: 5, backoffMaxMs: 999 };
    const lines = failureOf({ mcpServers, switchboard }).message.split('\n').slice(1);
    expect(lines.map((line) => line.trim().replace(/: (?:must be )?(a[t ] ?\w+).*/, ' ($1)'))).toEqual([
      'switchboard.queueLimit (a whole)',
      'switchboard.maxTimeoutMs (at least)',
      'switchboard.backoffMaxMs (at least)',
      'mcpServers.a.maxTimeoutMs (at least)',
      expect.stringContaining('mcpServers.b.args'),
      'mcpServers.b.maxTimeoutMs (at least)',
      'mcpServers.c.timeoutMs (a whole)',
    ]);
  });

  it('rejects a prefix that is the name of another server', () => {
    const mcpServers = { a: { command: 'x' }, b: { command: 'x', prefix: 'a' } };
    expect(failureOf({ mcpServers }).message).toBe(
      '/home/ada/mcp.json: mcpServers.b.prefix: "a" is also the name of server "a", ' +
        'so tool names would be ambiguous: choose another prefix',
    );
  });

  it('rejects a group with the name of a server outside of it', () => {
    const mcpServers = { a: { command: 'x' }, b: { command: 'x', group: 'a' } };
    expect(failureOf({ mcpServers }).message).toBe(
      '/home/ada/mcp.json: mcpServers.b.group: "a" is also the name of a server outside of the group: ' +
        'rename one of them, or add that server to the group',
    );
  });

  it.each(['', 'a/b', 'a\nb', 'x'.repeat(129), '__proto__', '\ud800'])('rejects the name %j', (name) => {
    const text = `{"mcpServers": {${JSON.stringify(name)}: {"command": "x"}}}`;
    expect(() => readConfiguration(text, file)).toThrow('rename the server');
  });

  it.each([
    [[], 'must be an object such as {"mcpServers": {…}}, not a list'],
    [{}, 'has no servers: add {"mcpServers"'],
    [{ mcpServers: [] }, 'mcpServers: must be an object of names and servers, not a list'],
    [{ mcpServers: {}, servers: {} }, 'servers: "mcpServers" is there too'],
    [{ mcpServers: {}, switchboard: [] }, 'switchboard: must be an object of settings, not a list'],
  ])('reports the problem with the file %j', (document, message) => {
    expect(failureOf(document).message).toContain(`/home/ada/mcp.json: ${message}`);
  });

  it('reports the line and column of a syntax error', () => {
    expect(() => readConfiguration('{\n  "mcpServers": {\n    "a": {,}\n}}', file)).toThrow(
      '/home/ada/mcp.json:3:11: not valid JSON: expected a value, found ","',
    );
  });
});

describe('the warnings about a configuration', () => {
  const warningsOf = (server: object) => read({ mcpServers: { s: server } }).warnings.map(describeProblem);

  it('name unknown keys and suggest the intended ones', () => {
    expect(
      warningsOf({ command: 'x', arg: [], enviroment: {}, serverUrl: 'y', zzz: 1, queueLimit: 1 }),
    ).toEqual([
      'mcpServers.s.arg: is not a known key, so it has no effect; did you mean "args"?',
      'mcpServers.s.enviroment: is not a known key, so it has no effect; did you mean "env"?',
      'mcpServers.s.serverUrl: is not a known key, so it has no effect; did you mean "url"?',
      'mcpServers.s.zzz: is not a known key, so it has no effect',
      'mcpServers.s.queueLimit: is a setting for all servers, so it has no effect here: move it to the top-level object "switchboard"',
    ]);
  });

  it('suggest our names for the limits of other programs', () => {
    expect(warningsOf({ command: 'x', maxConcurrency: 1, timeout_ms: 1, instances: 1 })).toEqual([
      'mcpServers.s.maxConcurrency: is not a known key, so it has no effect; did you mean "concurrency"?',
      'mcpServers.s.timeout_ms: is not a known key, so it has no effect; did you mean "timeoutMs"?',
      'mcpServers.s.instances: is not a known key, so it has no effect; did you mean "replicas"?',
    ]);
  });

  it('ignore keys of other programs', () => {
    expect(
      warningsOf({
        command: 'x',
        autoApprove: [],
        description: '',
        gallery: true,
        timeout: 60,
        $comment: '',
      }),
    ).toEqual([]);
  });

  it('name a duplicate server', () => {
    const { warnings } = readConfiguration(
      '{"mcpServers": {"a": {"command": "x"},\n"a": {"command": "y"}}}',
      file,
    );
    expect(warnings.map(describeProblem)).toEqual([
      'mcpServers.a: is there twice (again in line 2); the last one counts, so rename or remove one',
    ]);
  });
});

describe('a file with very many problems', () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`k${index}`, {}]));

  it.each([
    ['values', { mcpServers: { a: { command: 'x', env: many } } }],
    ['settings', { mcpServers: {}, switchboard: many }],
  ])('is rejected with the first of its %s', (_what, document) => {
    expect(failureOf(document).data.problems).toHaveLength(100);
  });

  it('is read with the first of its warnings', () => {
    expect(read({ mcpServers: { a: { command: 'x', ...many } } }).warnings).toHaveLength(100);
  });
});

function failureOf(document: unknown): SwitchboardError {
  try {
    read(document);
  } catch (error) {
    if (error instanceof SwitchboardError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('the file of another program', () => {
  it.each([
    ['Zed', '{"context_servers": {"a": {"command": "a"}}}'],
    ['Codex', 'model = "x"\n[mcp_servers.a]\ncommand = "a"\n'],
    ['Gemini CLI', '{"mcpServers": {"a": {"httpUrl": "https://x/mcp"}}}'],
    ['OpenCode', '{"mcp": {"a": {"type": "local", "command": ["a"]}}}'],
  ])('is recognized, with the command to import it: %s', (program, text) => {
    expect(() => readConfiguration(text, '/home/ada/settings')).toThrow(
      `\nThis looks like the file of ${program}: switchboard import /home/ada/settings`,
    );
  });
});

it.each([
  ['comand', 'command'],
  ['cmd', 'command'],
  ['serverUrl', 'url'],
])('suggests for %s the key %s', (key, meant) => {
  const text = JSON.stringify({ mcpServers: { a: { [key]: 'npx' } } });
  expect(() => readConfiguration(text, '/mcp.json')).toThrow(
    `"${key}" is not known: did you mean "${meant}"?`,
  );
});
