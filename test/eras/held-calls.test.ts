import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { accept, askedBy, comeBack, textIn } from './asked.ts';
import { RawModern } from './raw-modern.ts';

describe('a call of a modern client with requests from a legacy server', () => {
  let switchboard: RunningSwitchboard;
  let client: RawModern;

  setUp(async (use) => {
    switchboard = use(await startSwitchboard({ asker: fixtureServer('eras/asks-client') }));
    client = new RawModern(switchboard.url, { capabilities: { elicitation: {}, sampling: {} } });
  });

  it('returns the input request, and continues when the client returns with the response', async () => {
    const { inputRequests, requestState } = askedBy(await client.call('ask', { key: 'one' }));
    expect(Object.values(inputRequests)).toEqual([
      { method: 'elicitation/create', params: expect.objectContaining({ message: 'What about one?' }) },
    ]);
    const back = await client.call('ask', { key: 'one' }, comeBack({ inputRequests, requestState }));
    expect(textIn(back)).toBe(JSON.stringify(accept('Ada')));
    expect(back.result?.resultType).toBe('complete');
  });

  it.each([['decline'], ['cancel']])('passes on that the user said %s', async (action) => {
    const asked = askedBy(await client.call('ask', { key: action }));
    const back = await client.call('ask', { key: action }, comeBack(asked, { action }));
    expect(textIn(back)).toBe(JSON.stringify({ action }));
  });

  it('returns simultaneous server requests together', async () => {
    const asked = askedBy(await client.call('ask_both', { key: 'both' }));
    const requests = Object.entries(asked.inputRequests);
    expect(requests.map(([, { method }]) => method).toSorted()).toEqual([
      'elicitation/create',
      'sampling/createMessage',
    ]);
    const model = { role: 'assistant', model: 'm', content: { type: 'text', text: 'me' } };
    const inputResponses = Object.fromEntries(
      requests.map(([key, { method }]) => [key, method.startsWith('sampling') ? model : accept('Ada')]),
    );
    const back = await client.call(
      'ask_both',
      { key: 'both' },
      { inputResponses, requestState: asked.requestState },
    );
    expect(JSON.parse(textIn(back))).toEqual({ name: accept('Ada'), model });
  });

  it('repeats the requests that the client did not respond to', async () => {
    const first = askedBy(await client.call('ask_both', { key: 'half' }));
    const [elicitation] = Object.entries(first.inputRequests).find(([, { method }]) =>
      method.startsWith('elicitation'),
    )!;
    const inputResponses = { [elicitation]: accept('Ada') };
    const { requestState } = first;
    const second = askedBy(await client.call('ask_both', { key: 'half' }, { inputResponses, requestState }));
    expect(Object.values(second.inputRequests)).toEqual([
      expect.objectContaining({ method: 'sampling/createMessage' }),
    ]);
    const model = { role: 'assistant', model: 'm', content: { type: 'text', text: 'me' } };
    const back = await client.call('ask_both', { key: 'half' }, comeBack(second, model));
    expect(JSON.parse(textIn(back))).toEqual({ name: accept('Ada'), model });
  });

  it.each([
    ['none', {}],
    ['what is no answer', { inputResponses: 'yes' }],
    ['answers to nothing that was asked', { inputResponses: { other: accept('Eve') } }],
  ])('repeats the request when the client returns with %s', async (what, responses) => {
    const first = askedBy(await client.call('ask', { key: what }));
    const second = askedBy(
      await client.call('ask', { key: what }, { ...responses, requestState: first.requestState }),
    );
    expect(second.inputRequests).toEqual(first.inputRequests);
    expect(textIn(await client.call('ask', { key: what }, comeBack(second)))).toContain('Ada');
  });

  it('ignores responses to unknown requests', async () => {
    const asked = askedBy(await client.call('ask', { key: 'extra' }));
    const { inputResponses, requestState } = comeBack(asked);
    const more = { ...inputResponses, 'question-99': accept('Eve'), toString: accept('Eve') };
    const back = await client.call('ask', { key: 'extra' }, { inputResponses: more, requestState });
    expect(textIn(back)).toBe(JSON.stringify(accept('Ada')));
  });

  it('returns successive server requests one by one', async () => {
    const first = askedBy(await client.call('ask_in_turn', { key: 'turn' }));
    const second = askedBy(await client.call('ask_in_turn', { key: 'turn' }, comeBack(first, accept('Ada'))));
    expect(Object.values(second.inputRequests)[0]?.params.message).toBe('What about turn, second?');
    expect(second.requestState).not.toBe(first.requestState);
    const back = await client.call('ask_in_turn', { key: 'turn' }, comeBack(second, accept('Alan')));
    expect(JSON.parse(textIn(back))).toEqual([accept('Ada'), accept('Alan')]);
  });

  it('reports progress under the token of the latest request', async () => {
    const params = { name: 'ask_then_count', arguments: { key: 'progress' } };
    const asked = askedBy(await client.request('tools/call', params, { meta: { progressToken: 'old' } }));
    const stream = await client.stream(
      'tools/call',
      { ...params, ...comeBack(asked) },
      { meta: { progressToken: 'new' }, id: 'back' },
    );
    await stream.ended;
    expect(stream.messages.map(({ id, params }) => id ?? params?.progressToken)).toEqual(['new', 'back']);
  });

  it.each([
    ['prompts/get', { name: 'asking_prompt' }, 'prompt'],
    ['resources/read', { uri: 'resource://asker/test://asking' }, 'resource'],
  ])('may be %s', async (method, params, key) => {
    const asked = askedBy(await client.request(method, params));
    expect(Object.values(asked.inputRequests)[0]?.params.message).toBe(`What about ${key}?`);
    const back = await client.request(method, { ...params, ...comeBack(asked) });
    expect(textIn(back)).toBe(JSON.stringify(accept('Ada')));
  });

  it('cannot be a completion: the server request is declined', async () => {
    const ref = { type: 'ref/prompt', name: 'asking_prompt' };
    const { result = {} } = await client.request('completion/complete', {
      ref,
      argument: { name: 'a', value: 'b' },
    });
    const { values } = result.completion as { values: string[] };
    expect(values[0]).toContain('completion/complete');
    expect(JSON.parse(values[0]!)).toMatchObject({ code: -32601 });
  });

  it('declines server requests that the client does not support', async () => {
    const answer = await client.as({ capabilities: {} }).call('ask', { key: 'unable' });
    expect(JSON.parse(textIn(answer))).toMatchObject({
      code: -32601,
      message: expect.stringContaining('elicitation'),
    });
  });

  it('asks a client with URL support to visit the address of the server', async () => {
    const visitor = client.as({ capabilities: { elicitation: { url: {} } } });
    const { result } = await visitor.call('visit');
    expect(result).toMatchObject({ resultType: 'input_required' });
    expect(Object.values(result!.inputRequests as object)).toEqual([
      {
        method: 'elicitation/create',
        params: expect.objectContaining({ mode: 'url', url: 'https://example.com/consent' }),
      },
    ]);
  });

  it.each([
    ['only forms', { elicitation: { form: {} } }],
    ['nothing', {}],
  ])('passes on an error for a client that can be asked for %s', async (_what, capabilities) => {
    const { error } = await client.as({ capabilities }).call('visit');
    expect(error).toMatchObject({ code: -32042, data: { elicitations: [{ elicitationId: 'e1' }] } });
  });
});
