import { describe, expect, it } from 'vitest';
import { type ImportOptions, importText } from './import.ts';

const options: ImportOptions = { target: 'project', folder: undefined };
/** Built here because linters mistake a reference for a forgotten template. */
const ref = (inner: string) => `\${${inner}}`;

function importServer(server: object, target: ImportOptions['target'] = 'project') {
  const document = { name: 'io.github.ada/weather', version: '1.0.0', ...server };
  return importText(JSON.stringify(document), 'server.json', { ...options, target });
}

function packageOf(more: object, type = 'npm') {
  return {
    registryType: type,
    identifier: '@ada/weather',
    version: '1.2.3',
    transport: { type: 'stdio' },
    ...more,
  };
}

function weather(...packages: object[]) {
  return importServer({ packages }).mcpServers.weather;
}

describe('a server.json of the registry', () => {
  it('starts as its publisher says, with references for secrets and required inputs', () => {
    const environmentVariables = [
      { name: 'WEATHER_KEY', description: 'Key of the service', isRequired: true, isSecret: true },
      { name: 'UNITS', default: 'metric', choices: ['metric', 'imperial'] },
      { name: 'CITY', isRequired: true, choices: ['Rome', 'Oslo'] },
      { name: 'SPARE_KEY', isSecret: true },
      { name: 'COLOUR', description: 'Nobody needs it' },
      { name: 'FIXED', value: 'yes' },
    ];
    expect(
      importServer({ description: 'Tells the weather', packages: [packageOf({ environmentVariables })] }),
    ).toEqual({
      mcpServers: {
        weather: {
          command: 'npx',
          args: ['-y', '@ada/weather@1.2.3'],
          env: {
            WEATHER_KEY: ref('WEATHER_KEY'),
            UNITS: 'metric',
            CITY: ref('CITY'),
            SPARE_KEY: ref('SPARE_KEY:-'),
            FIXED: 'yes',
          },
        },
      },
      descriptions: { weather: 'Tells the weather' },
      notes: [
        'weather: set the secret WEATHER_KEY (Key of the service)',
        'weather: set the secret CITY (one of Rome, Oslo)',
        'weather: set the secret SPARE_KEY, if you need it',
        'weather: left out as optional: COLOUR',
      ],
    });
  });

  it('uses variables if it is imported into a file', () => {
    const environmentVariables = [{ name: 'KEY', isRequired: true }];
    expect(importServer({ packages: [packageOf({ environmentVariables })] }, 'file').notes).toEqual([
      'weather: set the variable KEY',
    ]);
  });

  it('keeps arguments in their order and position', () => {
    const runtimeArguments = [{ type: 'named', name: '--quiet' }];
    const packageArguments = [
      { type: 'positional', value: 'serve' },
      { type: 'positional', valueHint: 'folder', isRequired: true, description: 'Where it writes' },
      { type: 'positional', valueHint: 'other' },
      { type: 'named', name: '--port', default: 8080 },
      { type: 'named', name: '--read-only', format: 'boolean', value: true },
      { type: 'named', name: '--loud', format: 'boolean', default: 'false' },
      { type: 'named', name: '--verbose', description: 'Says more' },
      { type: 'named', name: '--token', isSecret: true, isRequired: true },
      {
        type: 'named',
        name: '--range',
        value: '{from}-{to} of {all}',
        variables: { from: { value: '1' }, to: { isRequired: true } },
      },
    ];
    const { mcpServers, notes } = importServer({
      packages: [packageOf({ runtimeArguments, packageArguments })],
    });
    expect(mcpServers.weather?.args).toEqual([
      ...['-y', '--quiet', '@ada/weather@1.2.3', 'serve', ref('WEATHER_FOLDER'), '--port', '8080'],
      ...['--read-only', '--token', ref('WEATHER_TOKEN'), '--range', `1-${ref('WEATHER_TO')} of {all}`],
    ]);
    expect(notes).toEqual([
      'weather: set the secret WEATHER_FOLDER (Where it writes)',
      'weather: set the secret WEATHER_TOKEN',
      'weather: set the secret WEATHER_TO',
      'weather: left out as optional: other, --loud, --verbose',
    ]);
  });

  it.each([
    ['npm', undefined, 'npx', ['-y', 'id@1.0']],
    ['npm', 'bunx', 'bunx', ['id@1.0']],
    ['pypi', undefined, 'uvx', ['id@1.0']],
    ['pypi', 'pipx', 'pipx', ['run', 'id==1.0']],
    ['oci', undefined, 'docker', ['run', '-i', '--rm', 'id:1.0']],
    ['oci', 'podman', 'podman', ['run', '-i', '--rm', 'id:1.0']],
    ['nuget', 'dnx', 'dnx', ['id@1.0', '--yes']],
  ])('starts a package of type %s (runtime hint %s) with %s', (type, runtimeHint, command, args) => {
    expect(weather(packageOf({ identifier: 'id', version: '1.0', runtimeHint }, type))).toEqual({
      command,
      args,
    });
  });

  it('passes variables to a container by name only, without a terminal', () => {
    const container = {
      identifier: 'ghcr.io/ada/weather:2',
      runtimeArguments: [
        { type: 'positional', value: 'run' },
        { type: 'named', name: '-it', format: 'boolean' },
        { type: 'named', name: '-e', value: 'TOKEN={token}', variables: { token: { isSecret: true } } },
        { type: 'named', name: '--mount', value: 'type=bind,src=/a,dst=/b' },
      ],
      environmentVariables: [{ name: 'LEVEL', value: 'info' }],
      packageArguments: [{ type: 'positional', value: 'stdio' }],
    };
    expect(weather(packageOf(container, 'oci'))).toEqual({
      command: 'docker',
      args: [
        ...['run', '--rm', '-i', '--mount', 'type=bind,src=/a,dst=/b'],
        ...['-e', 'TOKEN', '-e', 'LEVEL', 'ghcr.io/ada/weather:2', 'stdio'],
      ],
      env: { TOKEN: ref('WEATHER_TOKEN'), LEVEL: 'info' },
    });
  });

  it('connects to its URL if nothing can be started', () => {
    const remotes = [
      { type: 'sse', url: 'https://example.org/sse' },
      {
        type: 'streamable-http',
        url: 'https://{tenant}.example.org/{region}/mcp',
        variables: { tenant: { isRequired: true, description: 'Your tenant' }, region: { default: 'eu' } },
        headers: [
          {
            name: 'Authorization',
            value: 'Bearer {api_key}',
            variables: { api_key: { isRequired: true, isSecret: true } },
          },
          { name: 'X-Weather-Plan', isRequired: true },
          { name: 'X-Trace' },
        ],
      },
    ];
    expect(importServer({ remotes, packages: [packageOf({}, 'mcpb')] })).toMatchObject({
      mcpServers: {
        weather: {
          type: 'http',
          url: `https://${ref('WEATHER_TENANT')}.example.org/eu/mcp`,
          headers: {
            Authorization: `Bearer ${ref('WEATHER_API_KEY')}`,
            'X-Weather-Plan': ref('WEATHER_X_WEATHER_PLAN'),
          },
        },
      },
      notes: [
        'weather: the address https://{tenant}.example.org/{region}/mcp was taken; there is also the mcpb package @ada/weather',
        'weather: set the secret WEATHER_API_KEY',
        'weather: set the secret WEATHER_X_WEATHER_PLAN',
        'weather: set the secret WEATHER_TENANT (Your tenant)',
        'weather: left out as optional: X-Trace',
      ],
    });
  });

  it('uses the first package with stdio, and notes the alternatives', () => {
    const { mcpServers, notes } = importServer({
      packages: [
        packageOf({ transport: { type: 'streamable-http', url: 'http://127.0.0.1:{port}/' } }),
        packageOf({ identifier: 'weather-mcp' }, 'pypi'),
      ],
      remotes: [{ type: 'sse', url: 'https://example.org/sse' }],
    });
    expect(mcpServers.weather?.command).toBe('uvx');
    expect(notes).toEqual([
      'weather: the pypi package weather-mcp was taken; there is also the npm package @ada/weather, the address https://example.org/sse',
    ]);
  });

  it('is also found inside a response of the registry', () => {
    const server = { name: 'a/b', packages: [packageOf({})] };
    const text = JSON.stringify({ server, _meta: {} });
    expect(Object.keys(importText(text, 'server.json', options).mcpServers)).toEqual(['b']);
  });

  it.each([
    ['com.example/My Server!', 'My-Server'],
    ['plain', 'plain'],
    ['a/…', 'server'],
  ])('%s becomes the server %s', (name, expected) => {
    expect(Object.keys(importServer({ name, packages: [packageOf({})] }).mcpServers)).toEqual([expected]);
  });

  it.each<[string, object, string]>([
    [
      'of an unsupported type',
      { packages: [packageOf({}, 'mcpb'), packageOf({}, 'nuget')] },
      'type mcpb, a package of type nuget: it needs a package of type npm',
    ],
    [
      'without stdio',
      { packages: [packageOf({ transport: { type: 'sse' } })] },
      'npm that is reached by sse',
    ],
    ['without packages and remotes', { packages: [] }, 'has neither packages nor remotes'],
    [
      'in an older format',
      { packages: [{ registry_type: 'npm' }] },
      'packages[0].registryType: must be a string; older',
    ],
    [
      'with invalid arguments',
      { packages: [packageOf({ packageArguments: [{}] })] },
      'packageArguments[0].type',
    ],
    ['with an invalid URL', { remotes: [{ type: 'sse', url: 'example.org' }] }, 'weather.url: must be a URL'],
  ])('%s is rejected with the reason', (_what, server, reason) => {
    expect(() => importServer(server)).toThrow(reason);
  });
});
