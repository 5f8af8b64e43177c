import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { connectHttp, textOf } from '../helpers/clients.ts';
import { HttpProxy } from '../helpers/http-proxy.ts';
import { requirePart } from '../helpers/parts.ts';
import { setUp } from '../helpers/set-up.ts';
import { referenceServer, startEverything, startSwitchboard } from '../helpers/switchboard.ts';

describe.concurrent('servers with state', () => {
  let folder: string;
  setUp(async (use) => {
    folder = use(await temporaryFolder()).path;
  });

  it('filesystem reads and writes only in its folder', async () => {
    await writeFile(join(folder, 'read.txt'), 'what was written before');
    await using switchboard = await startSwitchboard({ filesystem: referenceServer('filesystem', folder) });
    await using connected = await connectHttp(switchboard.url);
    const { client } = connected;
    const read = await client.callTool({
      name: 'read_text_file',
      arguments: { path: join(folder, 'read.txt') },
    });
    expect(textOf(read)).toBe('what was written before');
    const path = join(folder, 'write.txt');
    await client.callTool({ name: 'write_file', arguments: { path, content: 'written through' } });
    expect(await readFile(path, 'utf8')).toBe('written through');
    const denied = await client.callTool({ name: 'read_text_file', arguments: { path: '/etc/hostname' } });
    expect(denied.isError).toBe(true);
    expect(textOf(denied)).toContain('Access denied');
  });

  it('memory stores its data where its environment says [P3]', async () => {
    const file = join(folder, 'memory.jsonl');
    await using switchboard = await startSwitchboard({
      memory: { ...referenceServer('memory'), env: { MEMORY_FILE_PATH: file } },
    });
    await using connected = await connectHttp(switchboard.url);
    const { client } = connected;
    await client.listTools();
    const entity = { name: 'Ada', entityType: 'person', observations: ['wrote the first program'] };
    await client.callTool({ name: 'create_entities', arguments: { entities: [entity] } });
    const graph = await client.callTool({ name: 'read_graph' });
    expect(graph.structuredContent).toEqual({ entities: [entity], relations: [] });
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject(entity);
  });
});

it('uvx mcp-server-fetch starts with command and arguments and fetches a page [M10, P3]', async (test) => {
  const { command, env } = requirePart('uvx', test);
  const pages = createServer((request, response) => {
    if (request.url === '/page.txt')
      response.writeHead(200, { 'content-type': 'text/plain' }).end('The page.');
    else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(pages, 'listening');
  const { port } = pages.address() as AddressInfo;
  try {
    await using switchboard = await startSwitchboard({
      fetch: { command, args: ['mcp-server-fetch'], env },
      local: { command, args: ['mcp-server-fetch', '--allow-private-ips'], env },
    });
    await using connected = await connectHttp(switchboard.url);
    const { tools } = await connected.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['fetch__fetch', 'local__fetch']);
    const fetchWith = (name: string) =>
      connected.client.callTool({
        name,
        arguments: { url: `http://127.0.0.1:${port}/page.txt`, raw: true },
      });
    expect(textOf(await fetchWith('local__fetch'))).toContain('The page.');
    const refused = await fetchWith('fetch__fetch');
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toContain('--allow-private-ips');
  } finally {
    pages.close();
    pages.closeAllConnections();
  }
});

describe.concurrent('an SSE server that checks a header', () => {
  it('is called at its URL with the configured headers on every request [P6]', async () => {
    await using server = await startEverything('sse');
    await using gate = await HttpProxy.start(server.url, ['authorization', 'Bearer of-the-user']);
    await using switchboard = await startSwitchboard({
      guarded: { type: 'sse', url: gate.url, headers: { Authorization: 'Bearer of-the-user' } },
    });
    await using connected = await connectHttp(switchboard.url);
    const result = await connected.client.callTool({ name: 'echo', arguments: { message: 'inside' } });
    expect(textOf(result)).toBe('Echo: inside');
    expect(gate.requests[0]).toEqual({ method: 'GET', header: 'Bearer of-the-user' });
    expect(gate.requests.slice(1).map(({ method }) => method)).toContain('POST');
    expect(new Set(gate.requests.map(({ header }) => header))).toEqual(new Set(['Bearer of-the-user']));
  });

  it('is shown as failed, with the reason, if the header is wrong [P6]', async () => {
    await using server = await startEverything('sse');
    await using gate = await HttpProxy.start(server.url, ['authorization', 'Bearer of-the-user']);
    await using switchboard = await startSwitchboard({
      guarded: { type: 'sse', url: gate.url, headers: { Authorization: 'Bearer of-nobody' } },
    });
    await using connected = await connectHttp(switchboard.url);
    expect((await connected.client.listTools()).tools).toEqual([]);
    const failed = await switchboard.event(({ state }) => state === 'backing_off');
    expect(failed.error).toContain('responded with HTTP 401. Check the configured headers.');
    expect(failed.error).not.toContain('of-nobody');
  });
});
