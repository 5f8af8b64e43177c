import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike, Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { Inbox } from '../helpers/inbox.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';
import { capabilitiesFor } from './capabilities.ts';
import { requestsOf } from './common-requests.ts';
import type { Answers, Peer, Target, ToolResult } from './peer.ts';

export async function connectLegacy(target: Target, answers: Answers): Promise<Peer> {
  const client = new Client(
    { name: 'legacy-client', version: '1.0.0' },
    { capabilities: capabilitiesFor(answers) },
  );
  giveAnswers(client, answers);
  const listening = Promise.withResolvers<void>();
  const transport =
    'url' in target
      ? new StreamableHTTPClientTransport(new URL(target.url), { fetch: noticing(listening.resolve) })
      : new StdioClientTransport({ stderr: 'ignore', ...target });
  const received = new Inbox<RpcMessage>();
  transport.onmessage = (message) => received.add(message as RpcMessage);
  await client.connect(transport as Transport);
  return {
    era: 'legacy',
    received,
    ...requestsOf(client),
    async callTool(name, given = {}, { logLevel, meta, ...options } = {}) {
      if (logLevel !== undefined) await client.setLoggingLevel(logLevel);
      const params = { name, arguments: given, ...(meta && { _meta: meta }) };
      return (await client.callTool(params, undefined, options)) as ToolResult;
    },
    async follow(...uris) {
      if (transport instanceof StreamableHTTPClientTransport) await listening.promise;
      for (const uri of uris) await client.subscribeResource({ uri });
    },
    async [Symbol.asyncDispose]() {
      if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
      await client.close();
    },
  };
}

/** The client does not wait until the stream for notifications is open. */
function noticing(opened: () => void): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (init?.method === 'GET') opened();
    return response;
  };
}

function giveAnswers(client: Client, { elicit, sample, roots }: Answers): void {
  if (elicit) client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicit(params));
  if (sample) client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => sample(params));
  if (roots) client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: roots() }));
}
