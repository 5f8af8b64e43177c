import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';
import { API_KEY, calls, resultsIn, says, startMessagesApi } from '../agent/messages-api.ts';
import { temporaryFolder } from '../helpers/cli.ts';
import { requirePart } from '../helpers/parts.ts';
import { setUp } from '../helpers/set-up.ts';

const example = join(import.meta.dirname, '../../examples/recipes');
const pancakes = {
  title: 'Pancakes',
  servings: 2,
  ingredients: ['200 g flour', '300 ml milk', '2 eggs'],
  steps: ['Whisk it all.', 'Bake in a hot pan.'],
};

let folder: string;

setUp(async (use) => {
  folder = use(await temporaryFolder()).path;
});

describe.concurrent('examples/recipes', () => {
  it('offers Claude the five tools of the book, the fetch tool and its own, and runs Claude’s calls [M3]', async (test) => {
    const uvx = requirePart('uvx', test);
    const book = join(folder, 'book');
    await using api = await startMessagesApi([
      calls({ name: 'create_recipe', input: pancakes }),
      calls({ name: 'display_recipe', input: pancakes }),
      says('There you are.'),
      calls({ name: 'list_recipes' }, { name: 'fetch', input: { url: 'http://127.0.0.1:9/' } }),
      says('That is all.'),
    ]);
    const said = await chat([book], ['Save my pancakes.', 'What do I have?'], {
      ...uvx.env,
      PATH: [dirname(uvx.command), process.env.PATH].join(delimiter),
      ANTHROPIC_API_KEY: API_KEY,
      ANTHROPIC_BASE_URL: api.url,
    });

    const requests = api.requests.items;
    expect(requests).toHaveLength(5);
    for (const { body } of requests) {
      expect(body.tools?.map((tool) => ('name' in tool ? tool.name : ''))).toEqual([
        ...['create_recipe', 'get_recipe', 'list_recipes', 'update_recipe', 'delete_recipe'],
        ...['fetch', 'display_recipe'],
      ]);
    }
    expect(resultsIn(requests[1]!)).toMatchObject([{ content: [{ text: '{"id":"pancakes"}' }] }]);
    expect(resultsIn(requests[2]!)).toMatchObject([{ content: [{ text: 'The user sees it.' }] }]);
    expect(JSON.stringify(requests[3]!.body.messages)).toContain('There you are.');
    expect(resultsIn(requests[4]!)).toMatchObject([
      { content: [{ text: '{"recipes":[{"id":"pancakes","title":"Pancakes"}]}' }] },
      { is_error: true },
    ]);

    expect(said).toContain('→ recipes create_recipe {"title":"Pancakes"');
    expect(said).toContain('Pancakes · for 2\n────────────────\n  • 200 g flour');
    expect(said).toContain('  2. Bake in a hot pan.');
    expect(said).toContain('There you are.');
    expect(said).toContain('← fetch failed: ');
    expect(said).toContain('That is all.');
    expect(JSON.parse(await readFile(join(book, 'pancakes.json'), 'utf8'))).toEqual(pancakes);
  });

  it('stores its recipes in files, and finds no others', async () => {
    const book = join(folder, 'other', 'book');
    const client = new Client({ name: 'recipes-test', version: '1.0.0' });
    const call = async (name: string, input: Record<string, unknown> = {}) => {
      const { content, isError } = await client.callTool({ name, arguments: input });
      const [first] = content;
      const text = first?.type === 'text' ? first.text : '';
      return isError === true ? text : JSON.parse(text);
    };
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [join(example, 'server.ts'), book] }),
    );
    try {
      expect(await call('list_recipes')).toEqual({ recipes: [] });
      expect(await call('create_recipe', pancakes)).toEqual({ id: 'pancakes' });
      expect(await call('create_recipe', { ...pancakes, title: 'Pancakes!' })).toEqual({ id: 'pancakes-2' });
      expect(await call('update_recipe', { id: 'pancakes', servings: 4 })).toEqual({
        id: 'pancakes',
        ...pancakes,
        servings: 4,
      });
      expect(await call('get_recipe', { id: 'pancakes' })).toMatchObject({ servings: 4, title: 'Pancakes' });
      expect(await call('delete_recipe', { id: 'pancakes-2' })).toEqual({ deleted: 'pancakes-2' });
      expect(await call('get_recipe', { id: 'pancakes-2' })).toContain('there is no recipe "pancakes-2"');
      expect(await call('delete_recipe', { id: '../../book' })).toContain('is not the id of a recipe');
      expect(await readdir(book)).toEqual(['pancakes.json']);
    } finally {
      await client.close();
    }
  });
});

/** Types these lines into the chat, and returns its output. */
async function chat(args: string[], lines: string[], env: Record<string, string>): Promise<string> {
  const { FORCE_COLOR: _, ...ours } = process.env;
  const child = spawn(
    process.execPath,
    ['--conditions=switchboard-source', join(example, 'chat.ts'), ...args],
    {
      env: { ...ours, NO_COLOR: '1', SWITCHBOARD_HOME: join(folder, 'home'), ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit');
  child.stdin.end(lines.map((line) => `${line}\n`).join(''));
  const said = Buffer.concat(await child.stdout.toArray()).toString();
  expect(await exited).toEqual([0, null]);
  return said;
}
