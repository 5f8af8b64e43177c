import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import { readMessage } from '../protocol/message-reader.ts';
import { type CallOptions, noOptions, readCallOptions } from './call-options.ts';

function optionsOf(meta: unknown, preferHeader?: string): CallOptions {
  const params = { name: 'a', ...(meta === undefined ? {} : { _meta: meta }) };
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  return readCallOptions(readMessage(Buffer.from(text)), preferHeader);
}

const run = (value: unknown) => ({ 'dev.switchboard/run': value });
const prefer = (value: unknown) => ({ 'dev.switchboard/prefer': value });
const timeout = (value: unknown) => ({ 'dev.switchboard/timeoutMs': value });

describe('the call options of a request', () => {
  it.each([
    ['no _meta', undefined, undefined],
    ['a _meta for the server', { progressToken: 1, 'com.example/prefer': {} }, undefined],
    ['a _meta with our tool description', { 'dev.switchboard/server': 'box' }, undefined],
    ['no labels', prefer({ labels: {} }), undefined],
    ['an empty header', undefined, ''],
    ['a header of commas', { progressToken: 1 }, ' , ,'],
  ])('are empty, at no cost, with %s', (_what, meta, header) => {
    expect(optionsOf(meta, header)).toBe(noOptions);
  });

  it('are labels and a timeout, in _meta', () => {
    const labels = { region: 'eu', tier: 'gold' };
    expect(optionsOf(prefer({ labels }))).toEqual({ labels, timeoutMs: undefined });
    expect(optionsOf(timeout(5_000))).toEqual({ labels: undefined, timeoutMs: 5_000 });
    expect(optionsOf({ progressToken: 1, ...prefer({ labels }), ...timeout(1) })).toEqual({
      labels,
      timeoutMs: 1,
    });
  });

  it('may name the agent run that a call belongs to', () => {
    const of = { id: '00000000-0000-4000-8000-000000000000', step: 3 };
    expect(optionsOf(run({ ...of, more: 1 }))).toEqual({ labels: undefined, timeoutMs: undefined, run: of });
  });

  it('accept labels as a configuration writes them', () => {
    const { labels } = optionsOf(prefer({ labels: { level: 2, gpu: true } }));
    expect(labels).toEqual({ level: '2', gpu: 'true' });
  });

  it.each([
    ['region=eu', { region: 'eu' }],
    ['region=eu, tier=gold', { region: 'eu', tier: 'gold' }],
    [' region = eu ,, query=a=b ,', { region: 'eu', query: 'a=b' }],
    ['region=eu, region=us', { region: 'us' }],
  ])('accept labels in the header: %s', (header, labels) => {
    expect(optionsOf(undefined, header)).toEqual({ labels, timeoutMs: undefined });
  });

  it('in _meta override those in the header', () => {
    const labels = { region: 'us' };
    expect(optionsOf(prefer({ labels }), 'region=eu, tier=gold').labels).toEqual(labels);
    expect(optionsOf(prefer({ labels: {} }), 'region=eu')).toBe(noOptions);
    expect(optionsOf(timeout(7), 'region=eu')).toEqual({ labels: { region: 'eu' }, timeoutMs: 7 });
  });

  it('keep names that objects inherit', () => {
    const labels = JSON.parse('{"__proto__": "a", "constructor": "b"}') as Record<string, string>;
    expect(Object.entries(optionsOf(prefer({ labels })).labels!)).toEqual(Object.entries(labels));
    expect(Object.entries(optionsOf(undefined, '__proto__=a, constructor=b').labels!)).toEqual(
      Object.entries(labels),
    );
  });

  it('mean the same in the header as in _meta', () => {
    const words = fc.stringMatching(/^[\w./-]{1,8}$/);
    fc.assert(
      fc.property(fc.dictionary(words, words, { minKeys: 1, maxKeys: 4 }), (labels) => {
        const header = Object.entries(labels).map((pair) => pair.join('='));
        expect(optionsOf(undefined, header.join(', '))).toEqual(optionsOf(prefer({ labels })));
      }),
    );
  });

  it.each([
    [prefer(null), 'The _meta["dev.switchboard/prefer"] must be an object such as {"labels"'],
    [prefer('region=eu'), 'must be an object such as {"labels": {"region": "eu"}}'],
    [prefer({}), 'must be an object such as {"labels": {"region": "eu"}}'],
    [prefer({ labels: ['eu'] }), 'must be an object such as {"labels": {"region": "eu"}}'],
    [
      prefer({ labels: { region: null } }),
      'label "region" in _meta["dev.switchboard/prefer"] must be a string',
    ],
    [prefer({ labels: { region: ['eu'] } }), 'label "region" in _meta["dev.switchboard/prefer"] must be'],
    ...[0, -1, 1.5, 1e300, '5000', null, true].map((value): [object, string] => [
      timeout(value),
      'The _meta["dev.switchboard/timeoutMs"] must be a whole number of milliseconds, 1 or more.',
    ]),
    ...[null, 'x', {}, { id: 'x', step: 1 }, { id: crypto.randomUUID() }].map((value): [object, string] => [
      run(value),
      'The _meta["dev.switchboard/run"] must be an object such as {"id": "<uuid>", "step": 1}.',
    ]),
  ])('are rejected in %j', (meta, message) => {
    expectRefusal(() => optionsOf(meta, 'region=eu'), message);
  });

  it.each(['region', 'region=eu, tier', '=eu', 'region=', ' = '])(
    'are rejected in the header %j',
    (header) => {
      const message =
        'The header X-Switchboard-Prefer must be a list of labels such as "region=eu, tier=gold".';
      expectRefusal(() => optionsOf(undefined, header), message);
    },
  );
});

function expectRefusal(action: () => unknown, message: string): void {
  expect(action).toThrow(message);
  expect(action).toThrow(expect.objectContaining({ name: SwitchboardError.name, code: 'invalid_params' }));
}
