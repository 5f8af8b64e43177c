import { describe, expect, it } from 'vitest';
import { nativeTool } from '../../src/agent.ts';
import { calls, resultsIn, says } from './messages-api.ts';
import { openScene } from './scene.ts';

const tool = (name: string, input: Record<string, unknown>) =>
  nativeTool({ name, input, run: (given) => given });

const shapes = {
  type: 'object',
  anyOf: [
    { properties: { 'filter[id]': { type: 'string' } }, required: ['filter[id]'] },
    { properties: { all: { const: true } }, required: ['all'] },
  ],
};

describe('a tool whose schema Claude’s API rejects', () => {
  it('is offered with a valid schema, and called with its original arguments', async () => {
    const script = [
      calls({ name: 'find', input: { filter_id_: 'x', more: 1 } }),
      says('Found.'),
      says('Again.'),
    ];
    await using scene = await openScene(script, () => ({ nativeTools: [tool('find', shapes)] }));
    const result = await scene.agent.chat('find x');
    const own = { 'filter[id]': 'x', more: 1 };
    expect(result.toolCalls).toMatchObject([{ input: own, isError: false }]);
    expect(result.messages[1]).toMatchObject({ content: [{ type: 'tool_call', input: own }] });
    const [first, second] = scene.api.requests.items;
    expect(first?.body.tools).toMatchObject([
      { input_schema: { properties: { filter_id_: { type: 'string' }, all: { const: true } } } },
    ]);
    expect(resultsIn(second!)).toMatchObject([{ content: [{ text: JSON.stringify(own) }] }]);
    // Claude sees its call as it made it, even if the history has lost Claude's original content.
    const history = result.messages.map(({ role, content }) => ({ role, content })) as typeof result.messages;
    await scene.agent.chat('again', { history });
    for (const { body } of scene.api.requests.items.slice(1)) {
      expect(body.messages[1]).toMatchObject({ content: [{ input: { filter_id_: 'x', more: 1 } }] });
    }
    expect(scene.warnings).toEqual([]);
  });

  it('is skipped with a warning if its input is no object, and the others are offered', async () => {
    await using scene = await openScene([says('one'), says('two')], () => ({
      nativeTools: [tool('plain', { type: 'string' }), tool('good', { type: 'object' })],
    }));
    for (const text of ['one', 'two']) expect((await scene.agent.chat('hello')).text).toBe(text);
    expect(scene.warnings).toEqual([
      'The tool "plain" of server "native" is not offered: its arguments are not an object.',
    ]);
    for (const { body } of scene.api.requests.items) expect(body.tools).toMatchObject([{ name: 'good' }]);
  });

  it('is skipped for good if the API rejects it for an unforeseen reason', async () => {
    const refusal =
      'tools.1.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12';
    const script = [
      { status: 400, error: { type: 'invalid_request_error', message: refusal } },
      says('one'),
      says('two'),
    ];
    await using scene = await openScene(script, () => ({
      nativeTools: ['a', 'b', 'c'].map((name) => tool(name, { type: 'object' })),
    }));
    for (const text of ['one', 'two']) expect((await scene.agent.chat('hello')).text).toBe(text);
    const offered = scene.api.requests.items.map(({ body }) =>
      body.tools?.map((each) => 'name' in each && each.name),
    );
    expect(offered).toEqual([
      ['a', 'b', 'c'],
      ['a', 'c'],
      ['a', 'c'],
    ]);
    expect(scene.warnings).toEqual([
      `The tool "b" of server "native" is not offered: Claude's API rejects it: ${refusal}`,
    ]);
  });
});
