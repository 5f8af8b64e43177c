import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readMessage } from '../../protocol/message-reader.ts';
import { bindingOf, type IssuedState, RequestStates } from './request-state.ts';

const content: IssuedState = { kind: 'replica', server: 'lab', number: 2, state: 'ünlike\u0000.any' };

describe('an issued request state', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is read back unchanged', () => {
    const states = new RequestStates(1_000);
    expect(states.read(states.issue(content, 'me'), 'me')).toEqual(content);
    const held: IssuedState = { kind: 'held', call: 'some call' };
    expect(states.read(states.issue(held, 'me'), 'me')).toEqual(held);
  });

  it('is valid only for the same client and request', () => {
    const states = new RequestStates(1_000);
    expect(() => states.read(states.issue(content, 'me'), 'you')).toThrow('belongs to another');
  });

  it('expires', () => {
    const states = new RequestStates(1_000);
    const state = states.issue(content, 'me');
    vi.advanceTimersByTime(999);
    expect(states.read(state, 'me')).toEqual(content);
    vi.advanceTimersByTime(1);
    expect(() => states.read(state, 'me')).toThrow('has expired');
  });

  it('is rejected by every other issuer', () => {
    const state = new RequestStates(1_000).issue(content, 'me');
    expect(() => new RequestStates(1_000).read(state, 'me')).toThrow('was not issued by this Switchboard');
  });

  it('cannot be tampered with, even in one character', () => {
    const states = new RequestStates(1_000);
    const state = states.issue(content, 'me');
    fc.assert(
      fc.property(
        fc.nat(state.length - 5),
        fc.constantFrom('A', 'B', '.', '', '=', ' ', 'é'),
        (at, letter) => {
          const place = at + 4;
          const changed = state.slice(0, place) + letter + state.slice(place + 1);
          if (changed === state) return;
          expect(() => states.read(changed, 'me')).toThrow('was not issued by this Switchboard');
        },
      ),
    );
    for (const changed of [`${state}.`, `${state}.x`, 'sb1.', 'sb1..', 'sb1.x.y'])
      expect(() => states.read(changed, 'me')).toThrow('was not issued by this Switchboard');
  });

  it.each(['', 'sb', 'SB1.x', 'anything else', '{"sb1.":1}'])('is rejected if it is %j', (state) => {
    expect(new RequestStates(1_000).read(state, 'me')).toBeUndefined();
  });
});

describe('the binding of a request state', () => {
  const binding = (params: string, client = 'me', project?: string, method = 'tools/call') =>
    bindingOf(
      client,
      project,
      readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`)),
    );
  const asked = '{"name":"t","arguments":{"a":1,"b":{"c":[1,{"d":2}]}}}';

  it.each([
    ['in another order', '{"arguments":{"b":{"c":[1,{"d":2}]},"a":1},"name":"t"}'],
    [
      'with what was asked for',
      '{"name":"t","inputResponses":{"x":1},"requestState":"s","arguments":{"a":1,"b":{"c":[1,{"d":2}]}}}',
    ],
    ['with another _meta', '{"name":"t","_meta":{"x":1},"arguments":{"a":1,"b":{"c":[1,{"d":2}]}}}'],
  ])('is the same for the same request %s', (_how, params) => {
    expect(binding(params)).toBe(binding(asked));
  });

  it('differs for any other request', () => {
    const all = [
      binding(asked),
      binding(asked, 'you'),
      binding(asked, 'me', 'project'),
      binding(asked, 'me', undefined, 'prompts/get'),
      binding('{"name":"u","arguments":{"a":1,"b":{"c":[1,{"d":2}]}}}'),
      binding('{"name":"t","arguments":{"a":1,"b":{"c":[{"d":2},1]}}}'),
      binding('{"name":"t"}'),
    ];
    expect(new Set(all).size).toBe(all.length);
  });
});
