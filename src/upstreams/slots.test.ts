import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type SlotRequest, Slots } from './slots.ts';

/** What a request does at the moment of its admission. */
type Reaction = 'stays' | 'is done' | 'comes again' | 'sends the last one away';

interface Person extends SlotRequest {
  readonly number: number;
}

/** Slots, the requests for them, and the order of admissions. */
class Counter {
  readonly slots: Slots;
  readonly clients = ['a', 'b', 'c'].map((name) => ({ name }));
  readonly admissions: Person[] = [];
  limit: number;
  private readonly queueLimit: number;
  private readonly waiting: Person[] = [];
  private readonly inside: unknown[] = [];
  private people = 0;
  /** For each client, those that were waiting at its last admission and have not been admitted since. */
  private readonly overtaken = new Map<object, Set<object>>();

  constructor(limit: number, queueLimit: number) {
    this.limit = limit;
    this.queueLimit = queueLimit;
    this.slots = new Slots(limit, queueLimit);
  }

  /** Like a call: takes a slot if possible, and waits otherwise. */
  arrive(client: object, reaction: Reaction): void {
    if (this.slots.take()) {
      this.inside.push(client);
      return;
    }
    const person: Person = {
      client,
      number: ++this.people,
      admitted: () => this.admitted(person, reaction),
      evicted: () => this.displaced(person),
    };
    const line = this.lineOf(client);
    if (this.slots.wait(person)) this.waiting.push(person);
    else expect(this.longestLine()).toBeLessThanOrEqual(line + 1);
  }

  /** The evicted request is the last of a longest queue, which is longer than that of the newcomer. */
  private displaced(person: Person): void {
    expect(this.waiting.findLast(({ client }) => client === person.client)).toBe(person);
    expect(this.lineOf(person.client)).toBe(this.longestLine());
    this.forget(person);
  }

  private lineOf(client: object): number {
    return this.waiting.filter((person) => person.client === client).length;
  }

  private longestLine(): number {
    return Math.max(...this.clients.map((client) => this.lineOf(client)));
  }

  leave(index: number): void {
    const person = this.waiting[index % this.waiting.length];
    if (person === undefined) return;
    this.forget(person);
    this.slots.leave(person);
    this.slots.leave(person);
  }

  release(): void {
    if (this.inside.pop() !== undefined) this.slots.release();
  }

  resize(limit: number): void {
    this.limit = limit;
    this.slots.resize(limit);
  }

  /** Invariants that hold whenever no admission is in progress. */
  check(): void {
    expect(this.slots.used).toBe(this.inside.length);
    expect(this.slots.queued).toBe(this.waiting.length);
    expect(this.waiting.length).toBeLessThanOrEqual(this.queueLimit);
    expect(this.waiting.length > 0 && this.inside.length < this.limit).toBe(false);
  }

  empty(): void {
    while (this.inside.length > 0) this.release();
    expect(this.waiting).toEqual([]);
    expect(this.slots.used).toBe(0);
  }

  private admitted(person: Person, reaction: Reaction): void {
    // First come, first served, for each client.
    expect(this.waiting.find(({ client }) => client === person.client)).toBe(person);
    this.forget(person);
    this.inside.push(person.client);
    expect(this.inside.length).toBeLessThanOrEqual(this.limit);
    this.noteTurn(person.client);
    this.admissions.push(person);
    if (reaction === 'is done' || reaction === 'comes again') this.release();
    if (reaction === 'comes again') this.arrive(person.client, 'stays');
    if (reaction === 'sends the last one away') this.leave(this.waiting.length - 1);
  }

  /** No client gets a second turn while another has waited since its first. */
  private noteTurn(client: object): void {
    for (const others of this.overtaken.values()) others.delete(client);
    expect(this.overtaken.get(client)?.size ?? 0).toBe(0);
    const others = new Set(this.waiting.map((other) => other.client));
    others.delete(client);
    this.overtaken.set(client, others);
  }

  private forget(person: Person): void {
    this.waiting.splice(this.waiting.indexOf(person), 1);
    if (this.waiting.some(({ client }) => client === person.client)) return;
    for (const others of this.overtaken.values()) others.delete(person.client);
  }
}

const reaction = fc.constantFrom<Reaction>(
  'stays',
  'stays',
  'is done',
  'comes again',
  'sends the last one away',
);
const act: fc.Arbitrary<(counter: Counter) => void> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.nat({ max: 2 }), reaction).map(
      ([index, then]) =>
        (counter: Counter) =>
          counter.arrive(counter.clients[index]!, then),
    ),
  },
  { weight: 3, arbitrary: fc.constant((counter: Counter) => counter.release()) },
  { weight: 1, arbitrary: fc.nat().map((index) => (counter: Counter) => counter.leave(index)) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 4 }).map((limit) => (counter: Counter) => counter.resize(limit)),
  },
);

function waits(slots: Slots, client: object, turns: string[], name: string): SlotRequest {
  const waiting = {
    client,
    admitted: () => void turns.push(name),
    evicted: () => void turns.push(`not ${name}`),
  };
  expect(slots.wait(waiting)).toBe(true);
  return waiting;
}

describe('slots', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('never exceed the limit, go to all waiting clients in turn, and are never left unused', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 12 }),
        fc.array(act, { maxLength: 100 }),
        (limit, queueLimit, acts) => {
          const counter = new Counter(limit, queueLimit);
          for (const does of acts) {
            does(counter);
            counter.check();
          }
          counter.empty();
          expect(new Set(counter.admissions).size).toBe(counter.admissions.length);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('are not blocked by a client with many calls', () => {
    const slots = new Slots(1, 1_000);
    const turns: string[] = [];
    const [busy, modest] = [{}, {}];
    slots.take();
    for (let call = 1; call <= 100; call++) waits(slots, busy, turns, `busy ${call}`);
    waits(slots, modest, turns, 'modest 1');
    waits(slots, modest, turns, 'modest 2');
    for (let call = 1; call <= 4; call++) slots.release();
    expect(turns).toEqual(['busy 1', 'modest 1', 'busy 2', 'modest 2']);
  });

  it('are refused when too many wait, until one leaves', () => {
    const slots = new Slots(1, 2);
    const turns: string[] = [];
    expect(slots.take()).toBe(true);
    expect(slots.take()).toBe(false);
    waits(slots, {}, turns, 'first');
    const second = waits(slots, {}, turns, 'second');
    expect(slots.wait({ client: {}, admitted() {}, evicted() {} })).toBe(false);
    slots.leave(second);
    waits(slots, {}, turns, 'third');
    slots.release();
    slots.release();
    expect(turns).toEqual(['first', 'third']);
  });

  it('go to clients with few calls if one client fills the queue', () => {
    const slots = new Slots(1, 3);
    const turns: string[] = [];
    const busy = {};
    slots.take();
    for (const name of ['busy 1', 'busy 2', 'busy 3']) waits(slots, busy, turns, name);
    waits(slots, {}, turns, 'modest');
    expect(turns).toEqual(['not busy 3']);
    expect(slots.wait({ client: busy, admitted() {}, evicted() {} })).toBe(false);
    for (let calls = 0; calls < 3; calls++) slots.release();
    expect(turns).toEqual(['not busy 3', 'busy 1', 'modest', 'busy 2']);
  });

  it('are granted at once when the limit grows, and not revoked when it shrinks', () => {
    const slots = new Slots(1, 10);
    const turns: string[] = [];
    slots.take();
    for (const name of ['first', 'second', 'third']) waits(slots, {}, turns, name);
    slots.resize(3);
    expect(turns).toEqual(['first', 'second']);
    slots.resize(1);
    expect(slots.used).toBe(3);
    slots.release();
    slots.release();
    expect(turns).toHaveLength(2);
    slots.release();
    expect(turns).toEqual(['first', 'second', 'third']);
  });

  it('cannot be taken by newcomers while others wait', () => {
    const slots = new Slots(1, 10);
    slots.take();
    slots.wait({ client: {}, admitted: () => expect(slots.take()).toBe(false), evicted() {} });
    slots.release();
    expect(slots.used).toBe(1);
  });

  it('stay in order with thousands that fail on admission', () => {
    const slots = new Slots(1, 10_000);
    let admitted = 0;
    slots.take();
    for (let call = 0; call < 10_000; call++) {
      slots.wait({
        client: slots,
        admitted: () => {
          admitted++;
          slots.release();
        },
        evicted() {},
      });
    }
    slots.release();
    expect(admitted).toBe(10_000);
    expect([slots.used, slots.queued]).toEqual([0, 0]);
  });

  it('report the longest waiting time', () => {
    vi.useFakeTimers({ now: 0 });
    const slots = new Slots(1, 10);
    slots.take();
    expect(slots.longestWaitMs(Date.now())).toBe(0);
    const first = waits(slots, {}, [], 'first');
    vi.advanceTimersByTime(100);
    waits(slots, {}, [], 'second');
    vi.advanceTimersByTime(20);
    expect(slots.longestWaitMs(Date.now())).toBe(120);
    slots.leave(first);
    expect(slots.longestWaitMs(Date.now())).toBe(20);
  });
});
