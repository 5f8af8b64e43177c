import { allowedBy } from '../config/tool-patterns.ts';
import { SwitchboardError } from '../errors.ts';
import type { Limit } from './policy.ts';
import type { Principal } from './principal.ts';

/** A call that counts towards limits of concurrent calls. */
export interface Ticket {
  /** May be called repeatedly. */
  release(): void;
}

interface Target {
  readonly name: string;
  readonly project: { readonly id: string };
  readonly members: readonly { readonly name: string }[];
}

const MINUTE_MS = 60_000;
/** Concurrent calls end at any time; clients may try again after this. */
const BUSY_RETRY_MS = 1_000;
/** Idle counters are dropped when there are so many, and again when these have doubled. */
const MANY_COUNTERS = 10_000;

/** Counts requests and concurrent calls in memory. Each process counts for itself. */
export class Limiter {
  private limits: readonly ActiveLimit[] = [];
  private ofEverybody: readonly ActiveLimit[] = [];
  private ofPrincipals = new Map<string | undefined, readonly ActiveLimit[]>();
  private readonly now: () => number;

  /** By a clock that nobody sets. */
  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  /** Counters of limits that stay the same are kept. */
  apply(limits: readonly Limit[]): void {
    const before = new Map(this.limits.map((limit) => [limit.id, limit]));
    this.limits = limits.map((limit) => {
      const known = before.get(limit.id);
      return known?.isSame(limit) ? known : new ActiveLimit(limit);
    });
    this.ofPrincipals = Map.groupBy(this.limits, ({ principal }) => principal);
    this.ofEverybody = this.ofPrincipals.get(undefined) ?? [];
  }

  /** Counts a request that is no call, or a call before its target is known. Throws over a limit. */
  countRequest(principal: Principal, project: string | undefined, isCall: boolean): void {
    if (this.limits.length === 0) return;
    const counted = this.of(principal).filter((limit) => limit.countsRequest(isCall ? undefined : project));
    count(counted, principal, this.now());
  }

  /** Throws over a limit. Undefined if no limit of concurrent calls applies. `tool`: undefined for other requests. */
  beginCall(principal: Principal, target: Target, tool: string | undefined): Ticket | undefined {
    if (this.limits.length === 0) return undefined;
    const applicable = this.of(principal).filter((limit) => limit.isAbout(target, tool));
    const concurrent = applicable.filter((limit) => limit.concurrent !== undefined);
    const now = this.now();
    for (const limit of concurrent) limit.checkConcurrent(principal, now);
    // The others counted the request when it arrived.
    const forCalls = applicable.filter((limit) => limit.isForCalls);
    count(forCalls, principal, now);
    if (concurrent.length === 0) return undefined;
    const begun = concurrent.map((limit) => limit.begin(principal, now));
    return {
      release() {
        for (const counter of begun.splice(0)) counter.running--;
      },
    };
  }

  private of({ id }: Principal): readonly ActiveLimit[] {
    const own = this.ofPrincipals.get(id);
    return own === undefined ? this.ofEverybody : [...this.ofEverybody, ...own];
  }
}

/** Counts only if no limit is exceeded. */
function count(limits: readonly ActiveLimit[], principal: Principal, now: number): void {
  const counted = limits.filter((limit) => limit.perMinute !== undefined);
  for (const limit of counted) limit.checkRate(principal, now);
  for (const limit of counted) limit.add(principal, now);
}

/** The requests of the last 60 seconds, and the calls in flight. */
class Counter {
  running = 0;
  /** When requests came, from `first` on. */
  private times: number[] = [];
  private first = 0;

  add(now: number): void {
    this.times.push(now);
  }

  /** How long until there is room for another request; 0 if there is. */
  waitMs(perMinute: number, now: number): number {
    this.forget(now);
    const { times, first } = this;
    if (times.length - first < perMinute) return 0;
    const decisive = times[times.length - perMinute] ?? now;
    return Math.max(Math.ceil(decisive + MINUTE_MS - now), 1);
  }

  isIdle(now: number): boolean {
    this.forget(now);
    return this.running === 0 && this.times.length === this.first;
  }

  private forget(now: number): void {
    const { times } = this;
    while (this.first < times.length && times[this.first]! <= now - MINUTE_MS) this.first++;
    // Moving what is left is worth it only now and then.
    if (this.first === 0 || this.first * 2 < times.length) return;
    times.splice(0, this.first);
    this.first = 0;
  }
}

/** A limit with its counters: one for each principal, or one for all. */
class ActiveLimit {
  readonly id: string;
  readonly principal: string | undefined;
  readonly perMinute: number | undefined;
  readonly concurrent: number | undefined;
  /** Whether it counts calls of certain servers or projects, and not all requests. */
  readonly isForCalls: boolean;
  private readonly limit: Limit;
  private readonly isServer: (name: string) => boolean;
  private readonly isTool: (name: string) => boolean;
  private readonly counters = new Map<string, Counter>();
  private many = MANY_COUNTERS;

  constructor(limit: Limit) {
    this.limit = limit;
    this.id = limit.id;
    this.principal = limit.principal;
    this.perMinute = limit.perMinute;
    this.concurrent = limit.concurrent;
    this.isServer = matching(limit.server);
    this.isTool = matching(limit.tool);
    this.isForCalls = [limit.project, limit.server, limit.tool].some((part) => part !== undefined);
  }

  isSame(limit: Limit): boolean {
    return JSON.stringify(limit) === JSON.stringify(this.limit);
  }

  countsRequest(project: string | undefined): boolean {
    const { server, tool, project: own } = this.limit;
    return server === undefined && tool === undefined && (own === undefined || own === project);
  }

  isAbout({ name, members, project }: Target, tool: string | undefined): boolean {
    if (this.limit.project !== undefined && this.limit.project !== project.id) return false;
    const isOfTool = tool === undefined ? this.limit.tool === undefined : this.isTool(tool);
    return isOfTool && (this.isServer(name) || members.some((member) => this.isServer(member.name)));
  }

  checkConcurrent(principal: Principal, now: number): void {
    const max = this.concurrent!;
    if (this.counter(principal, now).running < max) return;
    throw tooMany(max === 1 ? '1 call at a time' : `${max} calls at a time`, BUSY_RETRY_MS, this.id);
  }

  begin(principal: Principal, now: number): Counter {
    const counter = this.counter(principal, now);
    counter.running++;
    return counter;
  }

  checkRate(principal: Principal, now: number): void {
    const max = this.perMinute!;
    const waitMs = this.counter(principal, now).waitMs(max, now);
    if (waitMs === 0) return;
    throw tooMany(max === 1 ? '1 request per minute' : `${max} requests per minute`, waitMs, this.id);
  }

  add(principal: Principal, now: number): void {
    this.counter(principal, now).add(now);
  }

  private counter({ id }: Principal, now: number): Counter {
    const key = this.limit.isShared ? '' : id;
    let counter = this.counters.get(key);
    if (counter === undefined) {
      if (this.counters.size >= this.many) this.dropIdle(now);
      counter = new Counter();
      this.counters.set(key, counter);
    }
    return counter;
  }

  private dropIdle(now: number): void {
    for (const [key, counter] of this.counters) if (counter.isIdle(now)) this.counters.delete(key);
    this.many = Math.max(MANY_COUNTERS, 2 * this.counters.size);
  }
}

function matching(pattern: string | undefined): (name: string) => boolean {
  if (pattern === undefined) return () => true;
  const matches = allowedBy([pattern]);
  return (name) => matches({ name });
}

function tooMany(what: string, retryAfterMs: number, limit: string): SwitchboardError {
  const seconds = Math.ceil(retryAfterMs / 1_000);
  return new SwitchboardError(
    'too_many_requests',
    `The limit of ${what} is reached: try again in ${seconds === 1 ? '1 second' : `${seconds} seconds`}.`,
    { data: { retryAfterMs, limit } },
  );
}
