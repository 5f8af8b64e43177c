import { join } from 'node:path';
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as HttpTransportV2,
  SSEClientTransport as SseTransportV2,
} from '@modelcontextprotocol/client';
import type { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { connectHttp, connectSse, connectStdio } from '../helpers/clients.ts';
import { Inbox } from '../helpers/inbox.ts';
import { mainProgram } from '../helpers/programs.ts';
import { setUp } from '../helpers/set-up.ts';
import {
  fixtureServer,
  type RunningSwitchboard,
  referenceServer,
  startSwitchboard,
} from '../helpers/switchboard.ts';

const root = join(import.meta.dirname, '../..');

interface ClientUnderTest extends AsyncDisposable {
  client: Pick<ClientV1, 'readResource' | 'getPrompt' | 'ping'> & {
    listTools(): Promise<{ tools: { name: string }[] }>;
    callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<object>;
  };
  notifications: Inbox<{ method: string }>;
}

const elicitation = { elicitation: {} };
const accepted = { action: 'accept' as const, content: { name: 'the user' } };
const answerQuestions = (client: ClientV1) => client.setRequestHandler(ElicitRequestSchema, () => accepted);

async function connectV2(transport: HttpTransportV2 | SseTransportV2): Promise<ClientUnderTest> {
  const client = new ClientV2(
    { name: 'test-client', version: '2.0.0' },
    { capabilities: elicitation, versionNegotiation: { mode: 'legacy' } },
  );
  const notifications = new Inbox<{ method: string }>();
  client.fallbackNotificationHandler = async (notification) => notifications.add(notification);
  client.setRequestHandler('elicitation/create', () => accepted);
  await client.connect(transport);
  return { client, notifications, [Symbol.asyncDispose]: () => client.close() };
}

let switchboard: RunningSwitchboard;
let folder: string;

setUp(async (use) => {
  folder = use(await temporaryFolder()).path;
  switchboard = use(
    await startSwitchboard(
      { everything: referenceServer('everything'), growing: fixtureServer('grows-lists') },
      { startup: 'parallel' },
    ),
  );
});

const throughRemote = (path: string, transport: string): Promise<ClientUnderTest> =>
  connectStdio(
    {
      command: process.execPath,
      args: [
        join(root, 'test/peers/node_modules/mcp-remote/dist/proxy.js'),
        `${switchboard.baseUrl}${path}`,
        '--allow-http',
        '--transport',
        transport,
      ],
      env: { ...process.env, MCP_REMOTE_CONFIG_DIR: folder } as Record<string, string>,
    },
    elicitation,
    answerQuestions,
  );

const clients: Record<string, () => Promise<ClientUnderTest>> = {
  'SDK v1 over streamable HTTP': () => connectHttp(switchboard.url, elicitation, answerQuestions),
  'SDK v1 over SSE': () => connectSse(`${switchboard.baseUrl}/sse`, elicitation, answerQuestions),
  'SDK v2 over streamable HTTP': () => connectV2(new HttpTransportV2(new URL(switchboard.url))),
  'SDK v2 over SSE': () => connectV2(new SseTransportV2(new URL(`${switchboard.baseUrl}/sse`))),
  'mcp-remote over streamable HTTP': () => throughRemote('/mcp', 'http-only'),
  'mcp-remote over SSE': () => throughRemote('/sse', 'sse-only'),
  'switchboard stdio': () =>
    connectStdio(
      {
        command: process.execPath,
        args: [mainProgram, 'stdio', '--url', switchboard.baseUrl],
      },
      elicitation,
      answerQuestions,
    ),
};

describe.each(Object.keys(clients))('the client %s', (name) => {
  let connected: ClientUnderTest;
  let client: ClientUnderTest['client'];

  setUp(async (use) => {
    connected = use(await clients[name]!());
    client = connected.client;
  });

  it('lists and calls tools', async () => {
    await client.ping();
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toEqual(expect.arrayContaining(['echo', 'grow']));
    const message = `${name} \u2028 \u{1f600}\nwith a line break`;
    const result = await client.callTool({ name: 'echo', arguments: { message } });
    expect(result).toMatchObject({ content: [{ type: 'text', text: `Echo: ${message}` }] });
  });

  it('reads resources and gets prompts', async () => {
    const { contents } = await client.readResource({
      uri: 'resource://everything/demo://resource/dynamic/text/9',
    });
    expect(contents).toMatchObject([{ text: expect.stringContaining('Resource 9') }]);
    const { messages } = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Bern' } });
    expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: "What's weather in Bern?" } }]);
  });

  it('is notified of changes', async () => {
    const change = () =>
      connected.notifications.next(({ method }) => method === 'notifications/tools/list_changed');
    const added = `added_by_${name.replaceAll(' ', '_')}`;
    const isListed = async () => (await client.listTools()).tools.some((tool) => tool.name === added);
    let changed = change();
    await client.callTool({ name: 'grow', arguments: { name: added } });
    do {
      await changed;
      changed = change();
    } while (!(await isListed()));
  });

  it('responds to server requests', async () => {
    const result = await client.callTool({ name: 'trigger-elicitation-request', arguments: {} });
    expect(JSON.stringify(result)).toContain('- Name: the user');
  });

  it('receives the error of a failed call', async () => {
    await expect(client.callTool({ name: 'no_such_tool', arguments: {} })).rejects.toThrow(
      'Unknown tool: no_such_tool',
    );
  });
});
