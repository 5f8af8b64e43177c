import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { type Asked, askedBy, comeBack, textIn } from './asked.ts';
import { RawModern } from './raw-modern.ts';

const capabilities = { elicitation: {} };

/** Changes one character of a dot-separated part, counted from the end. */
function changed(state: string, part: number): string {
  const parts = state.split('.');
  const text = parts[part]!;
  const middle = Math.floor(text.length / 2);
  parts[part] = text.slice(0, middle) + (text[middle] === 'A' ? 'B' : 'A') + text.slice(middle + 1);
  return parts.join('.');
}

function signedByOther(state: string): string {
  const [mark, text = ''] = state.split('.');
  return `${mark}.${text}.${createHmac('sha256', 'guessed').update(text).digest('base64url')}`;
}

const forgeries: Record<string, (state: string) => string> = {
  'a changed content': (state) => changed(state, 1),
  'a changed signature': (state) => changed(state, 2),
  'the signature of somebody else': signedByOther,
  'no signature': (state) => state.split('.').slice(0, 2).join('.'),
  'an empty signature': (state) => `${state.split('.').slice(0, 2).join('.')}.`,
  'more behind it': (state) => `${state}.more`,
  'the mark alone': () => 'sb1.',
  'garbage behind the mark': () => 'sb1.garbage.ümläut',
  'no mark': () => 'garbage',
  'nothing in it': () => '',
};

describe('the request state that a client returns', () => {
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  const retry = (asked: Asked, requestState: string, by = client) =>
    by.call('ask', { key: 'one' }, { ...comeBack(asked), requestState });
  const begin = async () => askedBy(await client.call('ask', { key: 'one' }));

  setUp(async (use) => {
    switchboard = use(await startSwitchboard({ asker: fixtureServer('eras/asks-client') }));
    client = new RawModern(switchboard.url, { capabilities });
  });

  it.each(Object.entries(forgeries))(
    'is rejected with %s, and the call stays pending',
    async (_what, forge) => {
      const asked = await begin();
      const { error } = await retry(asked, forge(asked.requestState));
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('requestState') });
      expect(error?.message).toContain('without it');
      expect(textIn(await retry(asked, asked.requestState))).toContain('Ada');
    },
  );

  it('is rejected when it is used a second time', async () => {
    const asked = await begin();
    expect(textIn(await retry(asked, asked.requestState))).toContain('Ada');
    const { error } = await retry(asked, asked.requestState);
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('used already') });
  });

  it('works for only one of two simultaneous requests', async () => {
    const asked = await begin();
    const answers = await Promise.all([1, 2].map(() => retry(asked, asked.requestState)));
    expect(answers.filter(({ result }) => result !== undefined)).toHaveLength(1);
    expect(answers.flatMap(({ error }) => (error === undefined ? [] : [error.code]))).toEqual([-32602]);
  });

  it.each<[string, string, object]>([
    ['other arguments', 'ask', { key: 'two' }],
    ['more arguments', 'ask', { key: 'one', more: null }],
    ['another tool', 'ask_in_turn', { key: 'one' }],
  ])('is rejected for %s, and the call stays pending', async (_what, name, given) => {
    const asked = await begin();
    const { error } = await client.call(name, given, comeBack(asked));
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('another request') });
    expect(textIn(await retry(asked, asked.requestState))).toContain('Ada');
  });

  it('is accepted with the same arguments in another order', async () => {
    const asked = askedBy(await client.call('ask', { key: 'one', deep: { a: 1, b: [2] } }));
    const back = await client.call('ask', { deep: { b: [2], a: 1 }, key: 'one' }, comeBack(asked));
    expect(textIn(back)).toContain('Ada');
  });

  it('distinguishes integers that are equal as doubles', async () => {
    const call = async (integer: string, more: object) => {
      const params = { name: 'ask', arguments: { key: 'INTEGER' }, ...more };
      const { headers, body } = client.raw('tools/call', params);
      const response = await fetch(client.url, {
        method: 'POST',
        headers,
        body: body.replace('"INTEGER"', integer),
      });
      return (await response.json()) as RpcMessage;
    };
    const asked = askedBy(await call('9007199254740993', {}));
    expect(await call('9007199254740992', comeBack(asked))).toMatchObject({ error: { code: -32602 } });
    expect(textIn(await call('9007199254740993', comeBack(asked)))).toContain('Ada');
  });

  it.each<[string, Parameters<RawModern['as']>[0]]>([
    ['calls itself otherwise', { name: 'other' }],
    ['names a session', { headers: { 'x-switchboard-session': 'mine' } }],
  ])('is rejected for a client that %s, and the call stays pending', async (_what, appearance) => {
    const asked = await begin();
    const { error } = await retry(asked, asked.requestState, client.as(appearance));
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('another client') });
    expect(textIn(await retry(asked, asked.requestState))).toContain('Ada');
  });

  it('belongs to the session that a client names, whatever its client name', async () => {
    const mine = client.as({ headers: { 'x-switchboard-session': 'mine' } });
    const asked = askedBy(await mine.call('ask', { key: 'one' }));
    const yours = mine.as({ headers: { 'x-switchboard-session': 'yours' } });
    expect((await retry(asked, asked.requestState, yours)).error).toMatchObject({ code: -32602 });
    expect(textIn(await retry(asked, asked.requestState, mine.as({ name: 'renamed' })))).toContain('Ada');
  });

  it('is rejected with the same status for every error', async () => {
    const asked = await begin();
    const statuses = await Promise.all(
      ['sb1.x.y', changed(asked.requestState, 1), 'garbage'].map(async (requestState) => {
        const params = { name: 'ask', arguments: { key: 'one' }, requestState };
        return (await client.send('tools/call', params)).status;
      }),
    );
    expect(new Set(statuses).size).toBe(1);
    expect(textIn(await retry(asked, asked.requestState))).toContain('Ada');
  });

  it('is invalid if it is a number', async () => {
    const asked = await begin();
    const { error } = await client.call('ask', { key: 'one' }, { inputResponses: {}, requestState: 42 });
    expect(error).toMatchObject({ code: -32602 });
    expect(textIn(await retry(asked, asked.requestState))).toContain('Ada');
  });
});
