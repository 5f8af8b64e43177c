import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Inbox } from '../helpers/inbox.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';
import { capabilitiesFor } from './capabilities.ts';
import { requestsOf } from './common-requests.ts';
import type { Answers, Peer, Target, ToolResult } from './peer.ts';

/** The SDK starts a second process for version detection, unless the transport is of a custom class. */
class InPlaceStdioTransport extends StdioClientTransport {}

/** A client of SDK version 2 that speaks 2026-07-28 and never falls back. */
export async function connectModern(target: Target, answers: Answers): Promise<Peer> {
  const client = new Client(
    { name: 'modern-client', version: '2.0.0' },
    { capabilities: capabilitiesFor(answers), versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  giveAnswers(client, answers);
  const transport =
    'url' in target
      ? new StreamableHTTPClientTransport(new URL(target.url), {
          requestInit: { headers: target.headers ?? {} },
        })
      : new InPlaceStdioTransport({ stderr: 'ignore', ...target });
  const received = new Inbox<RpcMessage>();
  transport.onmessage = (message) => received.add(message as RpcMessage);
  await client.connect(transport);
  return {
    era: 'modern',
    received,
    ...requestsOf(client),
    async callTool(name, given = {}, { logLevel, meta, ...options } = {}) {
      const own = { ...meta, ...(logLevel && { [LOG_LEVEL_META_KEY]: logLevel }) };
      return (await client.callTool({ name, arguments: given, _meta: own }, options)) as ToolResult;
    },
    async follow(...uris) {
      // Order is guaranteed only within one subscription.
      await client.listen({
        toolsListChanged: true,
        ...(uris.length > 0 && { resourceSubscriptions: uris }),
      });
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

function giveAnswers(client: Client, { elicit, sample, roots }: Answers): void {
  if (elicit) client.setRequestHandler('elicitation/create', ({ params }) => elicit(params));
  if (sample) client.setRequestHandler('sampling/createMessage', ({ params }) => sample(params));
  if (roots) client.setRequestHandler('roots/list', () => ({ roots: roots() }));
}
