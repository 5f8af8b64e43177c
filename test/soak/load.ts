import { setTimeout as delay } from 'node:timers/promises';
import type { SoakClient } from './client.ts';
import type { Target } from './fleet.ts';
import type { Random } from './random.ts';
import type { PlannedCall, Verdict } from './verdict.ts';

/** A call without a response within this time is lost. The servers' timeouts are shorter. */
const DEADLINE_MS = 60_000;
const TURN_MS = 20;

export interface LoadSize {
  /** Ends after this many calls, or this time. */
  until: { calls: number } | { seconds: number };
  callsPerSecond: number;
  callsAtOnce: number;
  /** The maximum number of progress notifications per call. */
  steps: number;
  /** How often it pauses until no call is pending. */
  pauses: number;
}

/** Many clients that make random calls at a steady rate, regardless of pending ones. */
export class Load {
  private readonly clients: readonly SoakClient[];
  private readonly targets: readonly Target[];
  private readonly cancellable: readonly Target[];
  private readonly size: LoadSize;
  private readonly random: Random;
  private readonly verdict: Verdict;
  private readonly expectedTools: readonly string[];
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(
    clients: readonly SoakClient[],
    targets: readonly Target[],
    size: LoadSize,
    random: Random,
    verdict: Verdict,
  ) {
    this.clients = clients;
    this.size = size;
    this.targets = targets;
    this.cancellable = targets.filter(({ hasLater }) => hasLater);
    this.random = random;
    this.verdict = verdict;
    this.expectedTools = targets.map(({ prefix }) => `${prefix}echo`);
  }

  /** Settles at the end or on `stop`, once every call is judged. Awaits `paused` at each pause. */
  async run(stop: AbortSignal, paused: () => Promise<void>, everyCall: () => void): Promise<void> {
    const { until, callsPerSecond, callsAtOnce, pauses } = this.size;
    const start = performance.now();
    let turnAt = start;
    let started = 0;
    let due = 0;
    const elapsed = () => (performance.now() - start) / 1_000;
    const done = () => ('calls' in until ? started / until.calls : elapsed() / until.seconds);
    for (let pause = 1; pause <= pauses && !stop.aborted; pause++) {
      while (done() < pause / pauses && !stop.aborted) {
        due += ((performance.now() - turnAt) / 1_000) * callsPerSecond;
        turnAt = performance.now();
        for (; due >= 1 && done() < pause / pauses; due--) {
          // Calls that could not start in time are skipped.
          if (this.underWay.size >= callsAtOnce) due = 1;
          else {
            this.startOne();
            everyCall();
            started++;
          }
        }
        await delay(TURN_MS);
      }
      await Promise.all(this.underWay);
      await paused();
      turnAt = performance.now();
    }
  }

  /** One echo call outside of the load. True if it returned a result. */
  async tryOnce(target: Target): Promise<boolean> {
    const client = this.random.pick(this.clients);
    return this.call(client, { kind: 'echo', target, text: client.uniqueText() });
  }

  private startOne(): void {
    const client = this.random.pick(this.clients);
    const isList = this.random.chance(0.03);
    const request: Promise<unknown> = isList ? this.list(client) : this.call(client, this.plan(client));
    const over = request.finally(() => this.underWay.delete(over));
    this.underWay.add(over);
  }

  private plan(client: SoakClient): PlannedCall {
    const text = client.uniqueText();
    if (this.random.chance(0.05)) return { kind: 'later', target: this.random.pick(this.cancellable), text };
    const kind = this.random.chance(0.3) ? 'count' : 'echo';
    return { kind, target: this.random.pick(this.targets), text };
  }

  private async call(client: SoakClient, call: PlannedCall): Promise<boolean> {
    const { kind, target, text } = call;
    const delayMs = this.random.chance(0.5) ? this.random.below(200) : 0;
    const wantsProgress = kind === 'later' || (kind === 'echo' && this.random.chance(0.2));
    const steps = wantsProgress ? 1 + this.random.below(this.size.steps) : 0;
    const subject = kind === 'count' ? { key: text } : { text, steps };
    this.verdict.planned(call);
    try {
      const answers = await client.request(
        'tools/call',
        { name: `${target.prefix}${kind}`, arguments: { ...subject, delayMs } },
        {
          deadlineMs: DEADLINE_MS,
          cancelOnProgress: kind === 'later',
          ...(wantsProgress ? { text } : {}),
        },
      );
      this.verdict.judge(call, answers);
      return answers[0]?.result !== undefined;
    } catch (error) {
      this.verdict.lost(call, (error as Error).message);
      return false;
    }
  }

  private async list(client: SoakClient): Promise<void> {
    try {
      const answers = await client.request('tools/list', {}, { deadlineMs: DEADLINE_MS });
      this.verdict.judgeList(answers, this.expectedTools);
    } catch (error) {
      this.verdict.violation(`a list was not answered: ${(error as Error).message}`);
    }
  }
}
