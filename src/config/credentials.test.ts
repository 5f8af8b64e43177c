import { describe, expect, it } from 'vitest';
import { maskCredentials, moveCredentials, unmaskCredentials } from './credentials.ts';

const jwt = `eyJhbGciOiJIUzI1NiJ9.${'eyJzdWIiOiIxIn0'}.c2lnbmF0dXJl`;
const ghp = `ghp_${'a1'.repeat(18)}`;

function moved(config: object, server = 'github') {
  const secrets: Record<string, string> = {};
  const written = moveCredentials(server, config, (wanted, value) => {
    secrets[wanted] = value;
    return wanted;
  });
  return { written, secrets };
}

const ref = (name: string) => `\${${name}}`;

describe('credentials are found in', () => {
  it.each([
    [{ TOKEN: 'abc' }, 'GITHUB_TOKEN', 'abc'],
    [{ GITHUB_TOKEN: 'abc' }, 'GITHUB_TOKEN', 'abc'],
    [{ apiKey: 'abc' }, 'GITHUB_API_KEY', 'abc'],
    [{ DB_PASSWORD: '1234' }, 'GITHUB_DB_PASSWORD', '1234'],
    [{ OTHER: ghp }, 'GITHUB_OTHER', ghp],
    [{ OTHER: jwt }, 'GITHUB_OTHER', jwt],
    [{ AWS_ACCESS_KEY_ID: 'AKIAABCDEFGHIJKLMNOP' }, 'GITHUB_AWS_ACCESS_KEY_ID', 'AKIAABCDEFGHIJKLMNOP'],
  ])('variables: %j', (env, name, value) => {
    const [key] = Object.keys(env);
    expect(moved({ env })).toEqual({ written: { env: { [key!]: ref(name) } }, secrets: { [name]: value } });
    expect(JSON.stringify(maskCredentials({ env }))).not.toContain(value);
  });

  it.each([
    { env: { PGPASSWORD: 'hunter22' } },
    { env: { MYSQL_PWD: 'hunter22' } },
    { env: { SSHPASS: 'hunter22' } },
    { env: { MYPASS: 'hunter22' } },
    { env: { AUTH_HEADER: 'Bearer hunter22' } },
    { env: { DATABASE: 'host=localhost password=hunter22 user=me' } },
    { env: { CONNECTION: 'Password=hunter22;Server=box' } },
    { headers: { 'X-Upstream': 'Basic hunter22' } },
    { args: ['run', '--env=GITHUB_TOKEN=hunter22', 'image'] },
    { args: ['--header=Authorization: Bearer hunter22'] },
    { args: ['-c', 'export API_KEY=hunter22; exec node server.js'] },
    { args: ['-c', 'exec node server.js --api-key=hunter22'] },
    { args: ['-c', 'exec node server.js --api-key hunter22 --port 80'] },
    { args: ['-c', 'node server.js --token="hunter22" --log-token /var/log'] },
    { args: ['-c', `API_KEY='hunter22' node server.js`] },
    { args: ['-c', `curl -H 'Authorization: Bearer hunter22' -H "Accept: */*" http://host`] },
    { command: `server --password 'hunter22'` },
    { args: ['--db=postgres://user:hunter22@host/db'] },
    { args: ['-c', 'exec server postgres://user:hunter22@host/db'] },
    { env: { TOKEN: `${ref('PREFIX')}hunter22` } },
    { headers: { Authorization: `Bearer hunter22${ref('SUFFIX')}` } },
  ])('other spellings: %j', (config) => {
    const { written, secrets } = moved(config);
    expect(Object.values(secrets)).toEqual(['hunter22']);
    const filled = JSON.stringify(written).replace(
      /\$\{(\w+)\}/g,
      (whole, name: string) => secrets[name] ?? whole,
    );
    expect(JSON.parse(filled)).toEqual(config);
  });

  it('no similar values', () => {
    const config = {
      env: {
        ...{
          PWD: '/srv/box',
          MAX_TOKENS: '4000',
          AUTH_HEADER: `Bearer ${ref('TOKEN')}`,
          MODE: 'basic',
          BYPASS: 'hunter22',
          COMPASS: 'hunter22',
        },
        ...{
          KEY: `${ref('HOME')}/.ssh/id_rsa4096`,
          AUTH: `${ref('A')}:${ref('B')}`,
          TOKEN: `v1:${ref('A')}`,
        },
        COOKIE: `session=${ref('A')}; path=/`,
      },
      args: [
        '--env=MODE=fast',
        '--a=--b=--c=d',
        '--header=Accept: text/html',
        '-c',
        'A=1 exec node server.js',
        '-c',
        `server --max-token 4000 --key /etc/key.pem --token-file x --token $TOKEN --auth true --password --key "./k" --secret`,
        ...['http://host:80/@scope/x', 'http://[::1]:80/@x', `http://host:${ref('PORT')}/@x`],
      ],
    };
    expect(moved(config)).toEqual({ written: config, secrets: {} });
  });

  it('headers, and the authentication scheme stays in place', () => {
    const headers = {
      authorization: 'Bearer abc',
      'X-Api-Key': 'def',
      Cookie: 'a=b; c=d',
      Accept: 'text/html',
    };
    expect(moved({ headers })).toEqual({
      written: {
        headers: {
          authorization: `Bearer ${ref('GITHUB_AUTHORIZATION')}`,
          'X-Api-Key': ref('GITHUB_X_API_KEY'),
          Cookie: ref('GITHUB_COOKIE'),
          Accept: 'text/html',
        },
      },
      secrets: { GITHUB_AUTHORIZATION: 'abc', GITHUB_X_API_KEY: 'def', GITHUB_COOKIE: 'a=b; c=d' },
    });
  });

  it.each([
    ['https://user:pass@host/mcp', `https://user:${ref('GITHUB_PASSWORD')}@host/mcp`],
    [
      'https://host/mcp?access_token=abc&page=2',
      `https://host/mcp?access_token=${ref('GITHUB_ACCESS_TOKEN')}&page=2`,
    ],
    ['https://host/mcp?a=1&key=abc#x', `https://host/mcp?a=1&key=${ref('GITHUB_KEY')}#x`],
    ['https://host/mcp?api%5Fkey=abc', `https://host/mcp?api%5Fkey=${ref('GITHUB_API_KEY')}`],
    [`https://host/${ghp}/mcp`, `https://host/${ref('GITHUB_TOKEN')}/mcp`],
  ])('URLs: %s', (url, written) => {
    expect(moved({ url }).written).toEqual({ url: written });
    expect(moved({ args: ['--connect', url] }).written).toEqual({ args: ['--connect', written] });
    expect(moved({ env: { DATABASE_URL: url } }).secrets).not.toEqual({});
  });

  it.each([
    [['--api-key=abc'], [`--api-key=${ref('GITHUB_API_KEY')}`]],
    [
      ['--api-key', 'abc', 'more'],
      ['--api-key', ref('GITHUB_API_KEY'), 'more'],
    ],
    [
      ['-e', 'TOKEN=abc'],
      ['-e', `TOKEN=${ref('GITHUB_TOKEN')}`],
    ],
    [
      ['--header', 'Authorization: Bearer abc'],
      ['--header', `Authorization: Bearer ${ref('GITHUB_AUTHORIZATION')}`],
    ],
    [['{"token": "abc", "a": 1}'], [`{"token": "${ref('GITHUB_TOKEN')}", "a": 1}`]],
  ])('arguments: %j', (args, written) => {
    expect(moved({ command: 'npx', args }).written).toEqual({ command: 'npx', args: written });
    expect(JSON.stringify(maskCredentials({ args }))).not.toContain('abc');
  });

  it('defaults of references, under the name of the reference', () => {
    expect(moved({ env: { TOKEN: `\${MY_TOKEN:-abc}`, A: `\${B:-plain}` } })).toEqual({
      written: { env: { TOKEN: ref('MY_TOKEN'), A: `\${B:-plain}` } },
      secrets: { MY_TOKEN: 'abc' },
    });
    expect(JSON.stringify(maskCredentials({ env: { TOKEN: `\${T:-abc}` } }))).not.toContain('abc');
  });

  it.each([
    {
      env: {
        TOKEN: ref('TOKEN'),
        MAX_TOKENS: '100',
        KEYBOARD: 'de',
        AUTH_TYPE: 'oauth',
        TOKEN_FILE: '/x',
        AUTH: 'true',
      },
    },
    { headers: { Authorization: `Bearer ${ref('T')}`, 'Content-Type': 'application/json' } },
    { url: 'https://user@host:80/mcp?page=1&token=' },
    { url: `https://user:${ref('P')}@host/mcp?key=${ref('K')}` },
    {
      command: 'npx',
      args: ['-y', '@scope/server-key', '--token', ref('T'), '--verbose', '--token', '--x', 'http://a:80/'],
    },
  ])('nothing without credentials: %j', (config) => {
    expect(moved(config)).toEqual({ written: config, secrets: {} });
    expect(maskCredentials(config)).toEqual(config);
  });
});

it('creates valid secret names', () => {
  expect(moved({ env: { KEY: 'x' } }, '1-é server').secrets).toEqual({ _1_SERVER_KEY: 'x' });
  expect(Object.keys(moved({ env: { KEY: 'x' } }, 'x'.repeat(200)).secrets)[0]).toHaveLength(100);
});

it('restores masked values, and keeps changed ones', () => {
  const stored = { command: 'x', args: ['--token=abc', 'b'], env: { KEY: 'k', OTHER: 'o' } };
  const shown = maskCredentials(stored);
  expect(shown).toEqual({ command: 'x', args: ['--token=***', 'b'], env: { KEY: '***', OTHER: 'o' } });
  const given = { ...shown, env: { ...shown.env, OTHER: 'new' } };
  expect(unmaskCredentials(given, stored)).toEqual({ ...stored, env: { KEY: 'k', OTHER: 'new' } });
  expect(unmaskCredentials({ command: 'y', env: { KEY: '***', NEW: '***' } }, { command: 'y' })).toEqual({
    command: 'y',
    env: { KEY: '***', NEW: '***' },
  });
});

it('accepts any character in a URL password', () => {
  for (const password of ['a/b', 'a#b', 'a?b', '1x/y', 'a:b']) {
    expect(Object.values(moved({ args: [`postgres://user:${password}@host/db`] }).secrets)).toEqual([
      password,
    ]);
  }
});

it.each([
  'eyJ-',
  'sk-',
  'a://',
  '"a":',
  '?a=',
  '${A:-',
  '-----BEGIN ',
  ' --key ',
  ' --key "',
  ' a="',
  '"key: ',
  'a://a:',
])('scans a long text of %j quickly', (text) => {
  const config = { args: [text.repeat(30_000)], env: { KEY: text.repeat(30_000) } };
  expect(maskCredentials(config)).toBeDefined();
});
