import { beforeAll, describe, expect, it } from 'vitest';
import { answerJson, HttpPeer } from '../helpers/http-peer.ts';
import { bothTypes, exchange, initialize, RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { ModernPeer, tool } from './modern-peer.ts';
import type { Era } from './peer.ts';
import { RawModern } from './raw-modern.ts';

/** Numbers that change when they are parsed as doubles and written again. */
const oddNumbers = '[1.0,1e400,12345678901234567890,-0,0.10,1E5,0.0000001]';
const uiUri = 'ui://panel/main.html';

const uiTools = [
  tool('nested', { _meta: { ui: { resourceUri: uiUri, visibility: ['app'] } } }),
  tool('flat', { _meta: { 'ui/resourceUri': uiUri } }),
];
const oddTool =
  '{"name":"odd","inputSchema":{"type":"object","x-odd":1.0},"x-vendor":{"numbers":[1e400,2.50]}}';
const oddResult = `"content":[{"type":"x-vendor/new","numbers":${oddNumbers},"_meta":{"a.b/c":[1.0]}}],"x-vendor":{"deep":${oddNumbers}},"structuredContent":{"n":12345678901234567890},"_meta":{"dev.example/x":{"n":1.0},"other":null}`;

const shared = {
  'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'], 'x-list': [1, 2] },
};
const ofModern = {
  'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app', 'text/x'], version: 2 },
  'dev.example/only-modern': { deep: { one: true } },
};
const ofLegacy = { ...shared, 'dev.example/only-legacy': {} };

function resultText({ method, params = {} }: RpcMessage, extra: string): string {
  switch (method) {
    case 'tools/list':
      return `{${extra}"tools":[${oddTool},${uiTools.map((one) => JSON.stringify(one)).join(',')}]}`;
    case 'resources/list':
      return `{${extra}"resources":[{"uri":"${uiUri}","name":"panel","mimeType":"text/html;profile=mcp-app","_meta":{"ui":{"csp":{}}}}]}`;
    case 'resources/templates/list':
      return `{${extra}"resourceTemplates":[]}`;
    case 'resources/read':
      return `{${extra}"contents":[{"uri":${JSON.stringify(params.uri)},"text":"<p>","size":1.0}],"x-n":${oddNumbers}}`;
    case 'tools/call':
      return `{${extra}${oddResult}}`;
    default:
      return '{}';
  }
}

interface RawPeer {
  request(method: string, params?: object): Promise<RpcMessage>;
  resultText(method: string, params?: object): Promise<string>;
}

async function connect(era: Era, url: string): Promise<RawPeer> {
  const resultIn = (text: string) => text.slice(text.indexOf('"result":') + '"result":'.length);
  if (era === 'modern') {
    const client = new RawModern(url);
    return {
      request: (method, params) => client.request(method, params),
      resultText: async (method, params) => resultIn((await client.send(method, params)).text),
    };
  }
  const session = await RawSession.open(url);
  return {
    request: (method, params) => session.request(method, params),
    resultText: async (method, params) =>
      resultIn((await session.post({ jsonrpc: '2.0', id: 'text', method, params })).text),
  };
}

describe('extensions of servers', () => {
  let modern: ModernPeer;
  let legacy: HttpPeer;
  let switchboard: RunningSwitchboard;
  setUp(async (use) => {
    const behaviour = {
      capabilities: { tools: {}, resources: {}, 'x-unknown': { a: 1 }, extensions: ofModern },
      answer: (request: RpcMessage) =>
        resultText(request, '"resultType":"complete","ttlMs":0,"cacheScope":"private",'),
    };
    modern = use(await ModernPeer.start({ modern: behaviour, twin: behaviour }));
    legacy = use(
      await HttpPeer.start({
        legacy: ({ message, response }) => {
          if (message?.id === undefined) return false;
          const { protocolVersion } = message.params ?? {};
          const capabilities = { tools: {}, resources: {}, extensions: ofLegacy };
          const serverInfo = { name: 'legacy', version: '1' };
          if (message.method === 'server/discover')
            answerJson(response, { id: message.id, error: { code: -32601, message: 'Method not found' } });
          else if (message.method === 'initialize')
            answerJson(response, { id: message.id, result: { protocolVersion, capabilities, serverInfo } });
          else {
            response.writeHead(200, { 'content-type': 'application/json' });
            response.end(
              `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${resultText(message, '')}}`,
            );
          }
          return true;
        },
      }),
    );
    const mcpServers = { ...legacy.configuration(), ...modern.configuration() };
    switchboard = use(await startSwitchboard(mcpServers));
    await new RawModern(switchboard.url).toolNames();
  });

  const extensionsIn = (result: RpcMessage['result']) =>
    ((result?.capabilities ?? {}) as { extensions?: object }).extensions;
  const merged = {
    'io.modelcontextprotocol/ui': {
      mimeTypes: ['text/html;profile=mcp-app', 'text/x'],
      'x-list': [1, 2],
      version: 2,
    },
    'dev.example/only-legacy': {},
    'dev.example/only-modern': { deep: { one: true } },
  };

  it('appear as those of Switchboard to modern clients', async () => {
    const { result } = await new RawModern(switchboard.url).request('server/discover');
    expect(extensionsIn(result)).toEqual(merged);
  });

  it('appear as those of Switchboard to legacy clients', async () => {
    const headers = { 'content-type': 'application/json', accept: bothTypes };
    const { json } = await exchange(switchboard.url, { headers, body: initialize() });
    expect(extensionsIn(json?.result)).toEqual(merged);
  });

  const cells: [Era, Era][] = [
    ['legacy', 'legacy'],
    ['legacy', 'modern'],
    ['modern', 'legacy'],
    ['modern', 'modern'],
  ];
  describe.each(cells)('with a %s client and a %s server', (clientEra, serverEra) => {
    let client: RawPeer;
    beforeAll(async () => {
      client = await connect(clientEra, switchboard.url);
    });

    it('keep unknown members in the result of a tool, byte for byte', async () => {
      const text = await client.resultText('tools/call', { name: `${serverEra}__odd`, arguments: {} });
      expect(text).toContain(oddResult);
      expect(text.startsWith('{"resultType":"complete",')).toBe(clientEra === 'modern');
    });

    it('keep unknown members in the list of tools, number for number', async () => {
      const text = await client.resultText('tools/list');
      expect(text).toContain(
        '"inputSchema":{"type":"object","x-odd":1.0},"x-vendor":{"numbers":[1e400,2.50]}',
      );
    });

    it('keep unknown members in a resource, byte for byte', async () => {
      const text = await client.resultText('resources/read', { uri: `ui://${serverEra}/${uiUri}` });
      const uri = `ui://${serverEra}/${uiUri}`;
      expect(text).toContain(`"contents":[{"uri":"${uri}","text":"<p>","size":1.0}],"x-n":${oddNumbers}`);
    });

    it('show tool interfaces under ui:// URIs that can be read', async () => {
      const { result = {} } = await client.request('tools/list');
      const tools = result.tools as { name: string; _meta: Record<string, unknown> }[];
      const metaOf = (name: string) => tools.find((one) => one.name === `${serverEra}__${name}`)?._meta;
      const uri = `ui://${serverEra}/${uiUri}`;
      expect(metaOf('nested')).toMatchObject({ ui: { resourceUri: uri, visibility: ['app'] } });
      expect(metaOf('flat')).toMatchObject({ 'ui/resourceUri': uri });
      expect(await client.request('resources/read', { uri })).toMatchObject({
        result: { contents: [{ uri, text: '<p>' }] },
      });
    });
  });

  it('may have the same URIs on several servers, which are then ambiguous without a server', async () => {
    const client = new RawModern(switchboard.url);
    const { result = {} } = await client.request('resources/list');
    expect((result.resources as { uri: string }[]).map(({ uri }) => uri)).toEqual(
      ['legacy', 'modern', 'twin'].map((server) => `ui://${server}/${uiUri}`),
    );
    expect(await client.request('resources/read', { uri: uiUri })).toMatchObject({ error: { code: -32602 } });
  });
});
