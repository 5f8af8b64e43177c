import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ErrorCode, McpError, type Tool } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { type ConnectedClient, connectHttp, connectStdio, textOf } from '../helpers/clients.ts';
import { setUp } from '../helpers/set-up.ts';
import {
  fixtureServer,
  type RunningSwitchboard,
  referenceServer,
  startSwitchboard,
} from '../helpers/switchboard.ts';

const SERVER = 'dev.switchboard/server';

describe('the tools of several servers', () => {
  let folder: string;
  let servers: Record<string, ReturnType<typeof referenceServer>>;
  let switchboard: RunningSwitchboard;
  let connected: ConnectedClient;
  let client: ConnectedClient['client'];

  setUp(async (use) => {
    folder = use(await temporaryFolder()).path;
    servers = {
      everything: referenceServer('everything'),
      files: referenceServer('filesystem', folder),
      memory: { ...referenceServer('memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
    } as typeof servers;
    switchboard = use(
      await startSwitchboard({
        ...servers,
        disabled: { ...fixtureServer('reports-messages'), enabled: false },
      }),
    );
    connected = use(await connectHttp(switchboard.url));
    client = connected.client;
  });

  it('form one list, each as its server describes it, with its server [A1, G1]', async () => {
    const direct = await Promise.all(
      Object.entries(servers).map(async ([name, parameters]) => {
        // Some servers offer more to clients that accept server requests, as Switchboard does.
        await using alone = await connectStdio(parameters, {
          roots: { listChanged: true },
          sampling: { tools: {} },
          elicitation: { form: {}, url: {} },
        });
        const { tools } = await alone.client.listTools();
        return tools.map((tool): Tool => ({ ...tool, _meta: { ...tool._meta, [SERVER]: name } }));
      }),
    );
    const { tools } = await client.listTools();
    expect(tools).toEqual(direct.flat());
  });

  it('have unique names and exclude disabled servers [A1, A2, G1]', async () => {
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(tools.map(({ _meta }) => _meta?.[SERVER]))).toEqual(new Set(Object.keys(servers)));
  });

  it('are called at their server, and its response comes back [A3]', async () => {
    const path = join(folder, 'note.txt');
    await writeFile(path, 'a file');
    const calls = [
      { name: 'echo', arguments: { message: 'here' }, text: 'Echo: here' },
      { name: 'read_text_file', arguments: { path }, text: 'a file' },
      { name: 'search_nodes', arguments: { query: 'nobody' }, text: '"entities": []' },
    ];
    const answers = await Promise.all(
      calls.map(({ name, arguments: given }) => client.callTool({ name, arguments: given })),
    );
    answers.forEach((answer, index) => {
      expect(textOf(answer)).toContain(calls[index]!.text);
    });
  });

  it('that do not exist return a protocol error that names them [A4]', async () => {
    const failure = await client.callTool({ name: 'no_such_tool' }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(McpError);
    expect(failure).toMatchObject({
      code: ErrorCode.InvalidParams,
      message: expect.stringContaining('Unknown tool: no_such_tool'),
      data: { code: 'unknown_tool' },
    });
  });
});

it('a name on two servers gets the server as a prefix in the list [A2, G2]', async () => {
  await using switchboard = await startSwitchboard({
    left: fixtureServer('reverses-responses'),
    right: fixtureServer('reverses-responses'),
  });
  await using connected = await connectHttp(switchboard.url);
  const { tools } = await connected.client.listTools();
  expect(tools.map(({ name, _meta }) => [name, _meta?.[SERVER]])).toEqual([
    ['left__echo', 'left'],
    ['right__echo', 'right'],
  ]);
});

it('a long list is paged, and contains each tool once', async () => {
  await using switchboard = await startSwitchboard(
    { everything: referenceServer('everything'), notes: fixtureServer('notes') },
    { pageSize: 7 },
  );
  await using connected = await connectHttp(switchboard.url);
  const names: string[] = [];
  const sizes: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await connected.client.listTools(cursor === undefined ? {} : { cursor });
    sizes.push(page.tools.length);
    names.push(...page.tools.map(({ name }) => name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  expect(sizes.slice(0, -1).every((size) => size === 7)).toBe(true);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(expect.arrayContaining(['echo', 'get-sum', 'refer']));
});
