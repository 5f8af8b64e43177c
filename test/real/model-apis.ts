import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';

/** The tool call that a model is made to make. */
interface Wish {
  tool: string;
  arguments: object;
}

export interface ModelApi extends AsyncDisposable {
  url: string;
  offered: string[];
}

const responsesRequest = z.object({
  input: z.array(z.looseObject({ type: z.string().optional(), output: z.unknown().optional() })),
  tools: z.array(
    z.looseObject({
      name: z.string().optional(),
      tools: z.array(z.looseObject({ name: z.string() })).optional(),
    }),
  ),
});

/** A stand-in for OpenAI's Responses API, where the tools of an MCP server are a namespace. */
export function startResponsesApi(namespace: string, wish: Wish): Promise<ModelApi> {
  return serve((body, api) => {
    const { input, tools } = responsesRequest.parse(body);
    api.offered = tools.find(({ name }) => name === namespace)?.tools?.map(({ name }) => name) ?? [];
    const result = input.find(({ type }) => type === 'function_call_output');
    const said = { type: 'output_text', text: JSON.stringify(result?.output), annotations: [] };
    const item =
      result === undefined
        ? {
            ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', status: 'completed' },
            ...{ namespace, name: nameIn(api.offered, wish), arguments: JSON.stringify(wish.arguments) },
          }
        : { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [said] };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    return [
      { type: 'response.created', response: { id: 'resp_1' } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'resp_1', output: [item], usage } },
    ];
  });
}

const geminiRequest = z.object({
  contents: z.array(
    z.looseObject({ parts: z.array(z.looseObject({ functionResponse: z.unknown().optional() })) }),
  ),
  tools: z
    .array(z.looseObject({ functionDeclarations: z.array(z.looseObject({ name: z.string() })).optional() }))
    .default([]),
});

export function startGeminiApi(wish: Wish): Promise<ModelApi> {
  return serve((body, api) => {
    const { contents, tools } = geminiRequest.parse(body);
    api.offered = tools.flatMap(({ functionDeclarations = [] }) =>
      functionDeclarations.map(({ name }) => name),
    );
    const result = contents.at(-1)?.parts.find(({ functionResponse }) => functionResponse !== undefined);
    const part =
      result === undefined
        ? { functionCall: { name: nameIn(api.offered, wish), args: wish.arguments } }
        : { text: JSON.stringify(result.functionResponse) };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const content = { role: 'model', parts: [part] };
    return [{ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata }];
  });
}

/** The tool's name in this client: some add a prefix, and some replace `-` by `_`. */
function nameIn(offered: string[], { tool }: Wish): string | undefined {
  const plain = (name: string) => name.replaceAll('-', '_');
  return offered.find((name) => plain(name).endsWith(plain(tool)));
}

async function serve(answer: (body: unknown, api: ModelApi) => object[]): Promise<ModelApi> {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    try {
      const events = answer(JSON.parse(body), api);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
    } catch (error) {
      // Clients do not retry status 400.
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `${request.method} ${request.url}: ${error}` } }));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const api: ModelApi = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    offered: [],
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return api;
}
