import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import { Limiter } from './limiter.ts';
import { unrestricted } from './permissions.ts';
import type { Limit } from './policy.ts';
import { Principal } from './principal.ts';

const MINUTE_MS = 60_000;
const [ann, bob] = ['ann', 'bob'].map((name) => new Principal('key', name, name, unrestricted())) as [
  Principal,
  Principal,
];

let count = 0;

function limit(given: Partial<Limit>): Limit {
  const any = { principal: undefined, project: undefined, server: undefined, tool: undefined };
  return {
    id: `l${++count}`,
    ...any,
    perMinute: undefined,
    concurrent: undefined,
    isShared: false,
    ...given,
  };
}

/** A limiter whose clock the test sets. */
function limiterWith(...limits: Limit[]) {
  const clock = { now: 1_234_567 };
  const limiter = new Limiter(() => clock.now);
  limiter.apply(limits);
  return { limiter, clock };
}

function target(name: string, project = 'p', members = [name]) {
  return { name, project: { id: project }, members: members.map((member) => ({ name: member })) };
}

/** The milliseconds that the limiter tells to wait; 0 if it lets the request pass. */
function wait(act: () => unknown): number {
  try {
    act();
    return 0;
  } catch (error) {
    if (!(error instanceof SwitchboardError) || error.code !== 'too_many_requests') throw error;
    return error.data.retryAfterMs as number;
  }
}

describe('a limit of requests', () => {
  it('lets so many pass in any 60 seconds, and says when the next one can', () => {
    const { limiter, clock } = limiterWith(limit({ perMinute: 3 }));
    const request = () => wait(() => limiter.countRequest(ann, 'p', false));
    const start = clock.now;
    for (const gap of [0, 10_000, 20_000]) {
      clock.now += gap;
      expect(request()).toBe(0);
    }
    expect(request()).toBe(30_000);
    clock.now = start + MINUTE_MS - 1;
    expect(request()).toBe(1);
    clock.now = start + MINUTE_MS;
    expect(request()).toBe(0);
    // The second one leaves the minute next.
    expect(request()).toBe(10_000);
    clock.now += 5 * MINUTE_MS;
    expect([request(), request(), request()]).toEqual([0, 0, 0]);
    expect(request()).toBe(MINUTE_MS);
  });

  it('is exact for any requests at any times', () => {
    const gaps = fc.array(fc.oneof(fc.constant(0), fc.nat(2_000), fc.nat(40_000)), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), gaps, (perMinute, list) => {
        const { limiter, clock } = limiterWith(limit({ perMinute }));
        let passed: number[] = [];
        for (const gap of list) {
          clock.now += gap;
          passed = passed.filter((time) => time > clock.now - MINUTE_MS);
          const expected = passed.length < perMinute ? 0 : passed.at(-perMinute)! + MINUTE_MS - clock.now;
          expect(wait(() => limiter.countRequest(ann, 'p', false))).toBe(expected);
          if (expected === 0) passed.push(clock.now);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('tells a person what is reached, and a program which limit', () => {
    const one = limit({ perMinute: 1 });
    const { limiter } = limiterWith(one);
    limiter.countRequest(ann, 'p', false);
    expect(() => limiter.countRequest(ann, 'p', false)).toThrow(
      new SwitchboardError(
        'too_many_requests',
        'The limit of 1 request per minute is reached: try again in 60 seconds.',
        { data: { retryAfterMs: MINUTE_MS, limit: one.id } },
      ),
    );
  });

  it('counts each principal for itself, or all together', () => {
    const each = limiterWith(limit({ perMinute: 1 })).limiter;
    expect([ann, bob, ann].map((who) => wait(() => each.countRequest(who, 'p', false)) > 0)).toEqual([
      false,
      false,
      true,
    ]);
    const shared = limiterWith(limit({ perMinute: 1, isShared: true })).limiter;
    expect([ann, bob].map((who) => wait(() => shared.countRequest(who, 'p', false)) > 0)).toEqual([
      false,
      true,
    ]);
  });

  it('of one principal is none of another', () => {
    const { limiter } = limiterWith(limit({ perMinute: 1, principal: 'ann' }), limit({ perMinute: 2 }));
    const request = (who: Principal) => wait(() => limiter.countRequest(who, 'p', false)) > 0;
    expect([request(ann), request(ann), request(bob), request(bob), request(bob)]).toEqual([
      ...[false, true, false, false, true],
    ]);
  });

  it('counts a request for no limit if one is reached', () => {
    const { limiter, clock } = limiterWith(limit({ perMinute: 2 }), limit({ perMinute: 1, project: 'p' }));
    const request = (project: string) => wait(() => limiter.countRequest(ann, project, false)) > 0;
    expect([request('p'), request('p'), request('p'), request('q'), request('q')]).toEqual([
      ...[false, true, true, false, true],
    ]);
    clock.now += MINUTE_MS;
    expect([request('p'), request('q'), request('q')]).toEqual([false, false, true]);
  });

  it('of a server or tool counts calls of it only, and calls once', () => {
    const { limiter } = limiterWith(
      limit({ perMinute: 3 }),
      limit({ perMinute: 1, server: 'git*', tool: 'delete_*' }),
    );
    const call = (server: string, tool: string, members = [server]) =>
      wait(() => {
        limiter.countRequest(ann, 'p', true);
        limiter.beginCall(ann, target(server, 'p', members), tool);
      }) > 0;
    expect(call('github', 'delete_repo')).toBe(false);
    expect(call('files', 'delete_file')).toBe(false);
    // Of a group with the server in it. The request counts, though the call is not made.
    expect(call('pool', 'delete_repo', ['files', 'gitlab'])).toBe(true);
    expect(call('github', 'list')).toBe(true);
  });

  it('of a project counts calls when their project is known, and other requests at once', () => {
    const { limiter } = limiterWith(limit({ perMinute: 2, project: 'p' }));
    const call = (project: string) =>
      wait(() => {
        limiter.countRequest(ann, undefined, true);
        limiter.beginCall(ann, target('github', project), 'list');
      }) > 0;
    expect([call('p'), call('q'), call('q'), call('q')]).toEqual([false, false, false, false]);
    limiter.countRequest(ann, 'p', false);
    limiter.countRequest(ann, 'q', false);
    expect([call('p'), call('q')]).toEqual([true, false]);
  });

  it('of nothing lets nothing pass', () => {
    const { limiter } = limiterWith(limit({ perMinute: 0 }));
    expect(wait(() => limiter.countRequest(ann, 'p', false))).toBe(MINUTE_MS);
  });
});

describe('a limit of concurrent calls', () => {
  it('lets the next call pass when one has ended', () => {
    const { limiter } = limiterWith(limit({ concurrent: 2 }));
    const begin = () => limiter.beginCall(ann, target('github'), 'list')!;
    const [first] = [begin(), begin()];
    expect(wait(begin)).toBe(1_000);
    expect(begin).toThrow('The limit of 2 calls at a time is reached: try again in 1 second.');
    first.release();
    // A call ends once.
    first.release();
    begin();
    expect(wait(begin)).toBe(1_000);
  });

  it('counts each principal for itself, or all together', () => {
    const begin = (limiter: Limiter, who: Principal) =>
      wait(() => limiter.beginCall(who, target('a'), 'x')) > 0;
    const each = limiterWith(limit({ concurrent: 1 })).limiter;
    expect([begin(each, ann), begin(each, bob), begin(each, ann)]).toEqual([false, false, true]);
    const shared = limiterWith(limit({ concurrent: 1, isShared: true })).limiter;
    expect([begin(shared, ann), begin(shared, bob)]).toEqual([false, true]);
  });

  it('is for the calls that it names, and gives others no ticket', () => {
    const { limiter } = limiterWith(limit({ concurrent: 1, server: 'github' }));
    expect(limiter.beginCall(ann, target('files'), 'list')).toBeUndefined();
    const ofTools = limiterWith(limit({ concurrent: 1, tool: '*' })).limiter;
    expect(ofTools.beginCall(ann, target('github'), undefined)).toBeUndefined();
    expect(ofTools.beginCall(ann, target('github'), 'list')).toBeDefined();
    expect(limiter.beginCall(ann, target('github'), 'list')).toBeDefined();
    expect(wait(() => limiter.beginCall(ann, target('pool', 'p', ['files', 'github']), 'list'))).toBe(1_000);
    expect(new Limiter().beginCall(ann, target('github'), 'list')).toBeUndefined();
  });

  it('holds nothing if another limit is reached', () => {
    const { limiter, clock } = limiterWith(
      limit({ concurrent: 1, server: 'a*' }),
      limit({ perMinute: 1, server: 'a*' }),
    );
    limiter.beginCall(ann, target('a'), 'x')!.release();
    expect(wait(() => limiter.beginCall(ann, target('a'), 'x'))).toBe(MINUTE_MS);
    clock.now += MINUTE_MS;
    const ticket = limiter.beginCall(ann, target('a'), 'x')!;
    clock.now += MINUTE_MS;
    expect(wait(() => limiter.beginCall(ann, target('a'), 'x'))).toBe(1_000);
    ticket.release();
    // The refused call did not count.
    expect(wait(() => limiter.beginCall(ann, target('a'), 'x'))).toBe(0);
  });
});

describe('a limiter', () => {
  it('keeps what it counted for limits that stay, and forgets others', () => {
    const [kept, changed] = [limit({ perMinute: 1 }), limit({ perMinute: 1, project: 'p' })];
    const { limiter } = limiterWith(kept, changed);
    limiter.countRequest(ann, 'p', false);
    limiter.apply([{ ...kept }]);
    expect(wait(() => limiter.countRequest(ann, 'p', false))).toBe(MINUTE_MS);
    limiter.apply([{ ...changed, perMinute: 2 }]);
    expect(wait(() => limiter.countRequest(ann, 'p', false))).toBe(0);
    limiter.apply([]);
    for (let turn = 0; turn < 10; turn++) limiter.countRequest(ann, 'p', false);
  });

  it('forgets principals who are idle, and no others', () => {
    const { limiter, clock } = limiterWith(limit({ perMinute: 2, concurrent: 1 }));
    const request = (who: Principal) => wait(() => limiter.countRequest(who, 'p', false));
    const others = (from: number) => {
      for (let id = from; id < from + 10_000; id++)
        limiter.countRequest(new Principal('key', `other ${id}`, 'other', unrestricted()), 'p', false);
    };
    const ticket = limiter.beginCall(ann, target('a'), 'x')!;
    others(0);
    clock.now += MINUTE_MS;
    expect([request(bob), request(bob)]).toEqual([0, 0]);
    others(10_000);
    others(20_000);
    expect(request(bob)).toBe(MINUTE_MS);
    expect(wait(() => limiter.beginCall(ann, target('a'), 'x'))).toBe(1_000);
    ticket.release();
    limiter.beginCall(ann, target('a'), 'x');
  });
});
