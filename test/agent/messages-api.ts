import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type Anthropic from '@anthropic-ai/sdk';
import { Inbox } from '../helpers/inbox.ts';
import { eventsOf, type WireEvent } from './message-events.ts';
import { problemOf } from './message-rules.ts';

/** A response of Claude, or a failure. */
export type Reply =
  | Anthropic.Message
  | { status: number; error: { type: string; message: string }; headers?: Record<string, string> }
  /** The stream ends after this many events: normally, with a reset, or with an error event. */
  | { cut: Anthropic.Message; after: number; how: 'end' | 'reset' | 'error' };

export interface ApiRequest {
  body: Anthropic.MessageCreateParams;
  headers: IncomingHttpHeaders;
  /** Aborts when the client disconnects before the response. */
  gone: AbortSignal;
}

/** One reply per request in order, or a function that replies to each. */
export type Script = Reply[] | ((request: ApiRequest, index: number) => Reply | Promise<Reply>);

export interface MessagesApi extends AsyncDisposable {
  url: string;
  requests: Inbox<ApiRequest>;
}

export const API_KEY = 'key-of-the-tests';

/** A stand-in for Anthropic's Messages API, in JSON and in events. It is as strict as the real one about conversations. */
export async function startMessagesApi(script: Script): Promise<MessagesApi> {
  const requests = new Inbox<ApiRequest>();
  const server = createServer((incoming, response) => {
    answer(incoming, response, requests, script).catch((error: Error) => {
      fail(response, 500, 'api_error', `The stand-in failed: ${error.stack}`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A final turn of Claude. */
export function says(text: string, more: Partial<Anthropic.Message> = {}): Anthropic.Message {
  return message([textBlock(text)], { stop_reason: 'end_turn', ...more });
}

export function calls(...tools: { name: string; input?: unknown; id?: string }[]): Anthropic.Message {
  const blocks = tools.map(({ name, input = {}, id }, index): Anthropic.ToolUseBlock => {
    return { type: 'tool_use', id: id ?? `toolu_${index + 1}`, name, input, caller: { type: 'direct' } };
  });
  return message(blocks, { stop_reason: 'tool_use' });
}

export function message(
  content: Anthropic.ContentBlock[],
  more: Partial<Anthropic.Message> = {},
): Anthropic.Message {
  return {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-stand-in', content },
    ...{ stop_reason: 'end_turn', stop_sequence: null, stop_details: null },
    ...{ container: null, diagnostics: null },
    usage: {
      ...{ input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 3, cache_read_input_tokens: 2 },
      ...{ cache_creation: null, inference_geo: null, output_tokens_details: null, server_tool_use: null },
      ...{ service_tier: 'standard', speed: 'standard' },
    },
    ...more,
  } satisfies Anthropic.Message;
}

export function textBlock(text: string): Anthropic.TextBlock {
  return { type: 'text', text, citations: null };
}

/** The tool results in the last message of a request. */
export function resultsIn({ body }: Pick<ApiRequest, 'body'>): Anthropic.ToolResultBlockParam[] {
  const content = body.messages.at(-1)?.content ?? [];
  return typeof content === 'string' ? [] : content.filter((block) => block.type === 'tool_result');
}

async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  requests: Inbox<ApiRequest>,
  script: Script,
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const text = Buffer.concat(await incoming.toArray()).toString();
  // Some clients add a query, such as `?beta=true`.
  if (incoming.method !== 'POST' || incoming.url?.split('?')[0] !== '/v1/messages') {
    fail(response, 404, 'not_found_error', `${incoming.method} ${incoming.url} is not there.`);
    return;
  }
  const { authorization, 'x-api-key': key } = incoming.headers;
  if (key !== API_KEY && authorization !== `Bearer ${API_KEY}`) {
    fail(response, 401, 'authentication_error', 'invalid API key');
    return;
  }
  const body = JSON.parse(text) as Anthropic.MessageCreateParams;
  const problem = problemOf(body, incoming.headers);
  if (problem !== undefined) {
    fail(response, 400, 'invalid_request_error', problem);
    return;
  }
  const request = { body, headers: incoming.headers, gone: gone.signal };
  const index = requests.items.length;
  requests.add(request);
  const reply = typeof script === 'function' ? await script(request, index) : script[index];
  if (reply === undefined) {
    fail(response, 400, 'invalid_request_error', `The script has no reply to request ${index + 1}.`);
  } else if ('error' in reply) {
    fail(response, reply.status, reply.error.type, reply.error.message, reply.headers);
  } else if (!body.stream) {
    send(response, 200, 'cut' in reply ? reply.cut : reply);
  } else if ('cut' in reply) {
    stream(response, eventsOf(reply.cut).slice(0, reply.after), reply.how);
  } else {
    stream(response, eventsOf(reply), 'end');
  }
}

function stream(response: ServerResponse, events: WireEvent[], how: 'end' | 'reset' | 'error'): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'request-id': 'req_1' });
  const wire = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  if (how === 'error') response.end(`${wire}event: error\ndata: ${JSON.stringify(error)}\n\n`);
  else if (how === 'end') response.end(wire);
  // A reset must not overtake the data.
  else response.write(wire, () => response.socket?.resetAndDestroy());
}

function fail(
  response: ServerResponse,
  status: number,
  type: string,
  words: string,
  headers: Record<string, string> = {},
): void {
  send(response, status, { type: 'error', error: { type, message: words }, request_id: 'req_1' }, headers);
}

function send(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent) return;
  response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_1', ...headers });
  response.end(JSON.stringify(body));
}
