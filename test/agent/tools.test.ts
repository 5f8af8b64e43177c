import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { nativeTool } from '../../src/agent.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { calls, resultsIn, says } from './messages-api.ts';
import { openScene } from './scene.ts';

const recipeTools = ['create_recipe', 'list_recipes', 'get_recipe', 'update_recipe', 'delete_recipe'];
const twoServers = () => ({
  servers: {
    recipes: fixtureServer('echoes-requests', {}, 'recipes', ...recipeTools),
    fetch: fixtureServer('echoes-requests', {}, 'fetch', 'fetch'),
  },
});

describe('the tools of an agent', () => {
  it('[M3] are those of all its servers, five of one and one of another, offered to Claude', async () => {
    await using scene = await openScene([says('hello')], twoServers);
    await scene.agent.chat('hello');
    const [request] = scene.api.requests.items;
    expect(request?.body.tools).toEqual(
      [...recipeTools, 'fetch'].map((name) =>
        expect.objectContaining({ name, input_schema: { type: 'object' } }),
      ),
    );
  });

  it('[M4] have their server, and native ones belong to `native`', async () => {
    await using scene = await openScene([], () => ({ ...twoServers(), nativeTools: [displayRecipe()] }));
    await scene.agent.start();
    const owners = Object.fromEntries(scene.agent.tools().map(({ name, server }) => [name, server]));
    expect(owners).toEqual({
      ...Object.fromEntries(recipeTools.map((name) => [name, 'recipes'])),
      fetch: 'fetch',
      display_recipe: 'native',
    });
  });

  it('[M5] with the same name become one: the later one wins, with a warning', async () => {
    await using scene = await openScene([calls({ name: 'look' }), says('done')], () => ({
      servers: {
        first: fixtureServer('echoes-requests', {}, 'first', 'look', 'alone'),
        second: fixtureServer('echoes-requests', {}, 'second', 'look'),
      },
    }));
    await scene.agent.chat('look');
    expect(scene.warnings).toEqual([
      'The tool "look" of server "first" is hidden by the same name of server "second".',
    ]);
    const [first, second] = scene.api.requests.items;
    expect(first?.body.tools?.map((tool) => ('name' in tool ? tool.name : ''))).toEqual(['alone', 'look']);
    expect(JSON.stringify(resultsIn(second!))).toContain('\\"name\\":\\"second\\"');
  });

  it('[M5] are hidden by native ones of the same name, with a warning', async () => {
    await using scene = await openScene([calls({ name: 'fetch' }), says('done')], () => ({
      ...twoServers(),
      nativeTools: [nativeTool({ name: 'fetch', input: { type: 'object' }, run: () => 'natively' })],
    }));
    await scene.agent.chat('fetch');
    expect(scene.warnings).toEqual([
      'The tool "fetch" of server "fetch" is hidden by the native tool of that name.',
    ]);
    expect(resultsIn(scene.api.requests.items[1]!)[0]?.content).toEqual([{ type: 'text', text: 'natively' }]);
  });

  it('[M6] are called on their server, and Claude gets the result', async () => {
    const script = [calls({ name: 'echo', input: { text: 'soup' } }), says('It is soup.')];
    await using scene = await openScene(script, (witness) => ({
      servers: {
        fetch: fixtureServer('echoes-requests', {}, 'fetch', 'fetch'),
        recipes: fixtureServer('toolbox', witness.env('recipes')),
      },
    }));
    const result = await scene.agent.chat('what is it?');
    expect(result.text).toBe('It is soup.');
    const called = await scene.witness.sees('recipes', 'tools/call');
    expect(called.params).toMatchObject({ name: 'echo', arguments: { text: 'soup' } });
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'soup' }] },
    ]);
    expect(result.toolCalls).toMatchObject([{ name: 'echo', server: 'recipes', step: 1, isError: false }]);
  });

  it('[M7] run in the process if they are native, without any MCP call', async () => {
    const shown: unknown[] = [];
    const display = displayRecipe((recipe) => shown.push(recipe));
    const script = [calls({ name: 'display_recipe', input: { title: 'Soup', portions: '4' } }), says('done')];
    await using scene = await openScene(script, (witness) => ({
      servers: { recipes: fixtureServer('toolbox', witness.env('recipes')) },
      nativeTools: [display],
    }));
    await scene.agent.chat('show it');
    await scene.agent.stop();
    expect(shown).toEqual([{ title: 'Soup', portions: 4 }]);
    expect(resultsIn(scene.api.requests.items[1]!)[0]?.content).toEqual([
      { type: 'text', text: '{"displayed":"Soup"}' },
    ]);
    await scene.witness.sees('recipes', 'end');
    expect(scene.witness.seenBy('recipes', 'tools/call')).toEqual([]);
  });

  it('[M8] that do not exist give Claude the error `Unknown tool: {name}`', async () => {
    await using scene = await openScene([calls({ name: 'nobody_has_it' }), says('Sorry.')], twoServers);
    const result = await scene.agent.chat('do it');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { is_error: true, content: [{ type: 'text', text: 'Unknown tool: nobody_has_it' }] },
    ]);
    expect(result.text).toBe('Sorry.');
    expect(result.toolCalls).toMatchObject([{ server: undefined, isError: true }]);
  });

  it('are limited by name or pattern; the others are unknown', async () => {
    await using scene = await openScene([calls({ name: 'delete_recipe' }), says('Sorry.')], () => ({
      ...twoServers(),
      tools: ['*_recipes', 'fetch', 'get_*'],
    }));
    await scene.agent.chat('delete it');
    const [first, second] = scene.api.requests.items;
    const offered = first?.body.tools?.map((tool) => ('name' in tool ? tool.name : ''));
    expect(offered).toEqual(['list_recipes', 'get_recipe', 'fetch']);
    expect(JSON.stringify(resultsIn(second!))).toContain('Unknown tool: delete_recipe');
  });

  it('are updated in a later step when a server has changed them', async () => {
    const offersFresh = ({ body }: { body: { tools?: unknown } }) =>
      JSON.stringify(body.tools).includes('"fresh"');
    let isCalled = false;
    await using scene = await openScene(
      (request, index) => {
        if (index === 0) return calls({ name: 'add', input: { name: 'fresh' } });
        if (isCalled) return says('done');
        isCalled = offersFresh(request);
        // The list is fetched while the chat continues.
        return calls(isCalled ? { name: 'fresh' } : { name: 'echo', input: { text: 'in between' } });
      },
      (witness) => ({ servers: { box: fixtureServer('toolbox', witness.env('box')) }, maxSteps: 1_000 }),
    );
    const result = await scene.agent.chat('grow');
    expect(offersFresh(scene.api.requests.items[0]!)).toBe(false);
    expect(result.toolCalls.at(-1)).toMatchObject({ name: 'fresh', server: 'box', isError: false });
  });
});

describe('a native tool', () => {
  it('receives only valid input; Claude gets the validation errors', async () => {
    const script = [calls({ name: 'display_recipe', input: { portions: 'many' } }), says('Sorry.')];
    await using scene = await openScene(script, () => ({ nativeTools: [displayRecipe()] }));
    await scene.agent.chat('show it');
    const [result] = resultsIn(scene.api.requests.items[1]!);
    expect(result?.is_error).toBe(true);
    expect(JSON.stringify(result?.content)).toMatch(/The arguments are invalid. title: .*portions: /);
  });

  it('gives Claude an error when it throws', async () => {
    const broken = nativeTool({
      name: 'broken',
      input: { type: 'object' },
      run: () => {
        throw new Error('the oven is cold');
      },
    });
    await using scene = await openScene([calls({ name: 'broken' }), says('Sorry.')], () => ({
      nativeTools: [broken],
    }));
    await scene.agent.chat('bake');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { is_error: true, content: [{ type: 'text', text: 'the oven is cold' }] },
    ]);
  });

  it('is offered with its zod schema as JSON Schema', async () => {
    await using scene = await openScene([says('hello')], () => ({ nativeTools: [displayRecipe()] }));
    await scene.agent.chat('hello');
    expect(scene.api.requests.items[0]?.body.tools).toMatchObject([
      {
        name: 'display_recipe',
        description: 'Shows a recipe.',
        input_schema: { type: 'object', required: ['title', 'portions'] },
      },
    ]);
  });
});

function displayRecipe(show: (recipe: { title: string; portions: number }) => void = () => {}) {
  return nativeTool({
    name: 'display_recipe',
    description: 'Shows a recipe.',
    input: z.object({ title: z.string(), portions: z.coerce.number() }),
    run(recipe) {
      show(recipe);
      return { displayed: recipe.title };
    },
  });
}
