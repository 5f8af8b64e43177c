import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { RawModern } from './raw-modern.ts';

type Headers = Record<string, string | undefined>;

function base64(text: string): string {
  return `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

describe('the headers of a modern request', () => {
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  const call = (name: string, given: object, headers: Headers) =>
    client.send('tools/call', { name, arguments: given }, { id: 'mine', headers });

  setUp(async (use) => {
    switchboard = use(await startSwitchboard({ headed: fixtureServer('eras/requires-headers') }));
    client = new RawModern(switchboard.url);
    await client.request('tools/list');
  });

  it.each<[string, string, Headers]>([
    ['no version', 'echo', { 'mcp-protocol-version': undefined }],
    ['an older version', 'echo', { 'mcp-protocol-version': '2025-11-25' }],
    ['no method', 'echo', { 'mcp-method': undefined }],
    ['another method', 'echo', { 'mcp-method': 'tools/list' }],
    ['a method in another case', 'echo', { 'mcp-method': 'Tools/Call' }],
    ['an empty method', 'echo', { 'mcp-method': '' }],
    ['no name', 'echo', { 'mcp-name': undefined }],
    ['another name', 'echo', { 'mcp-name': 'hang' }],
    ['a name in another case', 'echo', { 'mcp-name': 'Echo' }],
    ['an empty name', 'echo', { 'mcp-name': '' }],
    ['another name as base64', 'echo', { 'mcp-name': base64('hang') }],
    ['broken base64', 'echo', { 'mcp-name': '=?base64?!!!?=' }],
    ['base64 of what is no UTF-8', 'echo', { 'mcp-name': '=?base64?/w==?=' }],
    ['base64 with the wrong padding', 'echo', { 'mcp-name': '=?base64?ZWNobw?=' }],
    ['the start of base64 alone', 'echo', { 'mcp-name': '=?base64?ZWNobw==' }],
    ['a method with a long run of blanks in it', 'echo', { 'mcp-method': `a${' '.repeat(80_000)}b` }],
    ['a method that is too long', 'echo', { 'mcp-method': `a${' '.repeat(100_000)}b` }],
    ['a name that is too long', 'echo', { 'mcp-name': 'x'.repeat(100_000) }],
  ])('are rejected with %s', async (_what, name, headers) => {
    const { status, json } = await call(name, {}, headers);
    expect(status).toBe(400);
    expect(json).toMatchObject({ id: 'mine', error: { code: -32020 } });
    expect(json?.error?.message).toMatch(/mcp-/i);
  });

  it.each<[string, string, Headers]>([
    ['the name as it is', 'echo', { 'mcp-name': 'echo' }],
    ['the name as base64', 'echo', { 'mcp-name': base64('echo') }],
    ['white space around the name', 'echo', { 'mcp-name': ' \techo \t' }],
    ['white space around base64', 'echo', { 'mcp-name': `  ${base64('echo')} ` }],
    ['the method as base64', 'echo', { 'mcp-method': base64('tools/call') }],
  ])('are accepted with %s', async (_what, name, headers) => {
    const { status, json } = await call(name, { said: 1 }, headers);
    expect(json?.error).toBeUndefined();
    expect(status).toBe(200);
  });

  it.each<[string, object, Headers]>([
    ['missing', { region: 'eu' }, {}],
    ['different', { region: 'eu' }, { 'mcp-param-region': 'us' }],
    ['in another case', { region: 'eu' }, { 'mcp-param-region': 'EU' }],
    ['different as base64', { region: 'eu' }, { 'mcp-param-region': base64('us') }],
    ['broken base64', { region: 'eu' }, { 'mcp-param-region': '=?base64?*?=' }],
    ['another number', { count: 42 }, { 'mcp-param-count': '43' }],
    ['nearly the same number', { count: 42 }, { 'mcp-param-count': '42.5' }],
    ['a number with an exponent', { count: 42 }, { 'mcp-param-count': '4.2e1' }],
    ['a number in hex', { count: 42 }, { 'mcp-param-count': '0x2a' }],
    ['an empty number', { count: 0 }, { 'mcp-param-count': '' }],
    ['another boolean', { dry: true }, { 'mcp-param-dry-run': 'false' }],
    ['a boolean in another case', { dry: true }, { 'mcp-param-dry-run': 'True' }],
    ['missing for what lies deeper', { deep: { name: 'x' } }, {}],
  ])('are rejected with an argument that is %s', async (_what, given, headers) => {
    const { status, json } = await call('headed', given, headers);
    expect(status).toBe(400);
    expect(json).toMatchObject({ id: 'mine', error: { code: -32020 } });
    expect(json?.error?.message).toContain('mcp-param-');
  });

  it.each<[string, object, Headers]>([
    ['none', {}, {}],
    ['null', { region: null }, {}],
    ['the same', { region: 'eu' }, { 'mcp-param-region': 'eu' }],
    ['the same as base64', { region: 'eü' }, { 'mcp-param-region': base64('eü') }],
    ['empty', { region: '' }, { 'mcp-param-region': '' }],
    ['an integer', { count: 42 }, { 'mcp-param-count': '42' }],
    ['an integer with decimals', { count: 42 }, { 'mcp-param-count': '42.0' }],
    ['a negative integer', { count: -7 }, { 'mcp-param-count': '-7' }],
    ['a boolean', { dry: false }, { 'mcp-param-dry-run': 'false' }],
    ['deeper', { deep: { name: 'x' } }, { 'mcp-param-name': 'x' }],
    ['one that no tool declares', {}, { 'mcp-param-other': 'x' }],
  ])('are accepted with an argument that is %s', async (_what, given, headers) => {
    const { status, json } = await call('headed', given, headers);
    expect(json?.error).toBeUndefined();
    expect(status).toBe(200);
  });

  it('may say 42 if the message says 42.0', async () => {
    const params = { name: 'headed', arguments: { count: 42 } };
    const { headers, body } = client.raw('tools/call', params);
    const response = await fetch(client.url, {
      method: 'POST',
      headers: { ...headers, 'mcp-param-count': '42' },
      body: body.replace('"count":42', '"count":42.0'),
    });
    expect(response.status).toBe(200);
  });

  it.each([
    ['v999', 'v999'],
    ['2099-01-01', '2099-01-01'],
    ['2025-11-25', '2025-11-25'],
  ])(
    'that name version %s in both places are rejected with the supported versions',
    async (header, version) => {
      const { status, json } = await client.send(
        'tools/list',
        {},
        {
          id: 5,
          headers: { 'mcp-protocol-version': header },
          meta: { 'io.modelcontextprotocol/protocolVersion': version },
        },
      );
      expect(status).toBe(400);
      expect(json).toMatchObject({ id: 5, error: { code: -32022, data: { requested: version } } });
      expect(json?.error?.data?.supported).toContain('2026-07-28');
    },
  );

  it.each<[string, Record<string, unknown>]>([
    ['no version', { 'io.modelcontextprotocol/protocolVersion': undefined }],
    ['no capabilities', { 'io.modelcontextprotocol/clientCapabilities': undefined }],
    ['capabilities that are none', { 'io.modelcontextprotocol/clientCapabilities': 'all' }],
    ['a client that is none', { 'io.modelcontextprotocol/clientInfo': 'me' }],
    ['a level that is none', { 'io.modelcontextprotocol/logLevel': 'loud' }],
    ['a version that is none', { 'io.modelcontextprotocol/protocolVersion': 1 }],
  ])('do not replace a message with %s', async (_what, meta) => {
    const { status, json } = await client.send('tools/list', {}, { id: 'x', meta });
    expect(status).toBe(400);
    expect(json).toMatchObject({ id: 'x', error: { code: -32602 } });
  });
});
