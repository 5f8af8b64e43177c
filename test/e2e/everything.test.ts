import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConnectedClient, connectHttp, textOf } from '../helpers/clients.ts';
import {
  type RunningSwitchboard,
  referenceServer,
  startEverything,
  startSwitchboard,
} from '../helpers/switchboard.ts';

const entries = {
  stdio: async () => ({ entry: referenceServer('everything') }),
  sse: async () => {
    const server = await startEverything('sse');
    return { entry: { type: 'sse', url: server.url }, server };
  },
  'streamable HTTP': async () => {
    const server = await startEverything('streamableHttp');
    return { entry: { url: server.url }, server };
  },
};

describe.each(Object.keys(entries) as (keyof typeof entries)[])('server-everything over %s', (transport) => {
  let server: AsyncDisposable | undefined;
  let switchboard: RunningSwitchboard;
  let connected: ConnectedClient;
  let client: ConnectedClient['client'];

  beforeAll(async () => {
    const { entry, ...running } = await entries[transport]();
    server = 'server' in running ? running.server : undefined;
    switchboard = await startSwitchboard({ everything: entry });
    connected = await connectHttp(
      switchboard.url,
      { elicitation: {}, sampling: {}, roots: { listChanged: true } },
      (candidate) => {
        candidate.setRequestHandler(ElicitRequestSchema, () => ({
          action: 'accept',
          content: { name: 'Ada', integer: 7 },
        }));
        candidate.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
          model: 'a-model',
          role: 'assistant',
          content: { type: 'text', text: `${params.maxTokens} tokens at most` },
        }));
        candidate.setRequestHandler(ListRootsRequestSchema, () => ({
          roots: [{ uri: 'file:///home/ada', name: 'the home of Ada' }],
        }));
      },
    );
    client = connected.client;
  });
  afterAll(async () => {
    await connected[Symbol.asyncDispose]();
    await switchboard.stop();
    await server?.[Symbol.asyncDispose]();
  });

  it('returns text', async () => {
    const result = await client.callTool({ name: 'echo', arguments: { message: 'hällo "you" \u{1f600}' } });
    expect(result).toEqual({ content: [{ type: 'text', text: 'Echo: hällo "you" \u{1f600}' }] });
  });

  it('returns structured content, which the client validates against the schema', async () => {
    await client.listTools();
    const result = await client.callTool({
      name: 'get-structured-content',
      arguments: { location: 'Chicago' },
    });
    expect(result.structuredContent).toEqual({
      temperature: 36,
      conditions: 'Light rain / drizzle',
      humidity: 82,
    });
  });

  it('returns images', async () => {
    const { content } = await client.callTool({ name: 'get-tiny-image' });
    const image = (content as { type: string; mimeType?: string; data?: string }[]).find(
      ({ type }) => type === 'image',
    );
    expect(image?.mimeType).toBe('image/png');
    expect(
      Buffer.from(image?.data ?? '', 'base64')
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
  });

  it('returns the failure of a tool as a result', async () => {
    const result = await client.callTool({ name: 'get-sum', arguments: { a: 'one' } });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain('get-sum');
  });

  it('returns links to resources that can be read [A6]', async () => {
    const { content } = await client.callTool({ name: 'get-resource-links', arguments: { count: 2 } });
    const links = (content as { type: string; uri: string }[]).filter(({ type }) => type === 'resource_link');
    expect(links.map(({ uri }) => uri)).toEqual([
      'resource://everything/demo://resource/dynamic/blob/1',
      'resource://everything/demo://resource/dynamic/text/2',
    ]);
    const { contents } = await client.readResource({ uri: links[1]!.uri });
    expect(contents).toMatchObject([
      { uri: links[1]!.uri, mimeType: 'text/plain', text: expect.stringContaining('Resource 2') },
    ]);
  });

  it('returns embedded resources in tools and prompts [A6]', async () => {
    const uri = 'resource://everything/demo://resource/dynamic/text/3';
    const { content } = await client.callTool({
      name: 'get-resource-reference',
      arguments: { resourceType: 'Text', resourceId: 3 },
    });
    expect(content).toContainEqual({ type: 'resource', resource: expect.objectContaining({ uri }) });

    const { messages } = await client.getPrompt({
      name: 'resource-prompt',
      arguments: { resourceType: 'Text', resourceId: '3' },
    });
    expect(messages[1]?.content).toMatchObject({ type: 'resource', resource: { uri } });
  });

  it('completes arguments of prompts and of templates', async () => {
    const ofPrompt = await client.complete({
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'name', value: 'A' },
      context: { arguments: { department: 'Engineering' } },
    });
    expect(ofPrompt.completion.values).toEqual(['Alice']);
    const { resourceTemplates } = await client.listResourceTemplates();
    const ofTemplate = await client.complete({
      ref: { type: 'ref/resource', uri: resourceTemplates[0]!.uriTemplate },
      argument: { name: 'resourceId', value: '12' },
    });
    expect(ofTemplate.completion.values).toEqual(['12']);
  });

  it('reports progress', async () => {
    const progress: unknown[] = [];
    const result = await client.callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 0.15, steps: 3 } },
      undefined,
      { onprogress: (step) => progress.push(step) },
    );
    expect(progress).toEqual([1, 2, 3].map((step) => ({ progress: step, total: 3 })));
    expect(textOf(result)).toContain('completed');
  });

  it('asks for user input, sampling and roots, and gets the responses', async () => {
    const elicited = await client.callTool({ name: 'trigger-elicitation-request' });
    expect(textOf(elicited)).toContain('- Name: Ada\n- Favorite Integer: 7');
    const sampled = await client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: 'Say something', maxTokens: 12 },
    });
    expect(textOf(sampled)).toContain('12 tokens at most');
    expect(textOf(await client.callTool({ name: 'get-roots-list' }))).toContain('file:///home/ada');
  });

  it('announces updates of a resource that the client subscribed to [G13]', async () => {
    const uri = 'resource://everything/demo://resource/dynamic/text/1';
    await client.subscribeResource({ uri });
    await client.callTool({ name: 'toggle-subscriber-updates' });
    const update = await connected.notifications.first(
      ({ method }) => method === 'notifications/resources/updated',
    );
    expect(update.params).toEqual({ uri });
    await client.callTool({ name: 'toggle-subscriber-updates' });
    await client.unsubscribeResource({ uri });
  });

  it('announces a resource that it adds, which can then be read', async () => {
    const changed = connected.notifications.next(
      ({ method }) => method === 'notifications/resources/list_changed',
    );
    const data = `data:text/plain,through%20${encodeURIComponent(transport)}`;
    await client.callTool({ name: 'gzip-file-as-resource', arguments: { name: 'new.gz', data } });
    await changed;
    const { resources } = await client.listResources();
    const added = resources.find(({ name }) => name === 'new.gz');
    expect(added?.uri).toBe('resource://everything/demo://resource/session/new.gz');
    const { contents } = await client.readResource({ uri: added!.uri });
    expect(contents[0]).toMatchObject({ mimeType: 'application/gzip' });
  });
});
