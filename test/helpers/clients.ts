import { Client, type ClientOptions } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport, type StdioServerParameters } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Notification } from '@modelcontextprotocol/sdk/types.js';
import { Inbox } from './inbox.ts';

export interface ConnectedClient extends AsyncDisposable {
  client: Client;
  notifications: Inbox<Notification>;
}

type Capabilities = NonNullable<ClientOptions['capabilities']>;
/** Registers the client's handlers for server requests. */
type Preparation = (client: Client) => void;

export async function connectHttp(
  url: string,
  capabilities: Capabilities = {},
  prepare?: Preparation,
  headers: Record<string, string> = {},
): Promise<ConnectedClient> {
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  const connected = await connect(transport as Transport, capabilities, prepare);
  return {
    ...connected,
    async [Symbol.asyncDispose]() {
      // A Switchboard that the test stopped has ended the session.
      await transport.terminateSession().catch(() => {});
      await connected.client.close();
    },
  };
}

export function connectSse(
  url: string,
  capabilities: Capabilities = {},
  prepare?: Preparation,
  headers: Record<string, string> = {},
): Promise<ConnectedClient> {
  const transport = new SSEClientTransport(new URL(url), { requestInit: { headers } });
  return connect(transport, capabilities, prepare);
}

export function connectStdio(
  parameters: StdioServerParameters,
  capabilities: Capabilities = {},
  prepare?: Preparation,
): Promise<ConnectedClient> {
  return connect(new StdioClientTransport({ stderr: 'ignore', ...parameters }), capabilities, prepare);
}

async function connect(
  transport: Transport,
  capabilities: Capabilities,
  prepare: Preparation = () => {},
): Promise<ConnectedClient> {
  const client = new Client({ name: 'test-client', version: '1.0.0' }, { capabilities });
  const notifications = new Inbox<Notification>();
  client.fallbackNotificationHandler = async (notification) => notifications.add(notification);
  prepare(client);
  await client.connect(transport);
  return { client, notifications, [Symbol.asyncDispose]: () => client.close() };
}

export function textOf(result: Awaited<ReturnType<Client['callTool']>>): string {
  const content = result.content as { type: string; text?: string }[];
  return content.map(({ text = '' }) => text).join('\n');
}

/** Lists again after each change notification until the list matches. */
export async function toolNamesOnce(
  { client, notifications }: ConnectedClient,
  fits: (names: string[]) => boolean,
): Promise<string[]> {
  for (;;) {
    const changed = notifications.next(({ method }) => method === 'notifications/tools/list_changed');
    const names = (await client.listTools()).tools.map(({ name }) => name);
    if (fits(names)) return names;
    await changed;
  }
}
