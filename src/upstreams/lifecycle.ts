import { SwitchboardError } from '../errors.ts';
import { type Condition, type Happening, initialCondition, next, type RecoveryPolicy } from './condition.ts';

interface LifecycleEvents {
  /** The state is another one, or its reason or next try is. */
  changed(): void;
  /** The time of the next try has come. */
  due(): void;
}

/** The condition of one connection, and the clock that moves it on. */
export class Lifecycle {
  private readonly policy: RecoveryPolicy;
  private readonly events: LifecycleEvents;
  private timer: NodeJS.Timeout | undefined;
  private isDue = false;
  condition: Condition = initialCondition(Date.now());

  constructor(policy: RecoveryPolicy, events: LifecycleEvents) {
    this.policy = policy;
    this.events = events;
  }

  happens(happening: Happening): void {
    const before = this.condition;
    const after = next(before, happening, Date.now(), this.policy, Math.random());
    if (after === before) return;
    this.condition = after;
    if (after.nextTry !== before.nextTry) this.setTimer(after.nextTry);
    const isSame =
      after.state === before.state && after.reason === before.reason && after.nextTry === before.nextTry;
    if (!isSame) this.events.changed();
  }

  /** The next try need not wait for its time. */
  hasten(): void {
    clearTimeout(this.timer);
    this.isDue = true;
  }

  /** Why nothing can be sent and nothing be started now; undefined where it can. */
  refusal(server: string): SwitchboardError | undefined {
    const { state, reason, nextTry } = this.condition;
    switch (state) {
      case 'backing_off':
      case 'breaker_open':
        if (this.isDue || nextTry === undefined || nextTry <= Date.now()) return undefined;
        return unavailable(server, reason, nextTry);
      case 'failed':
        return reason;
      case 'stopped':
        return unavailable(server, new SwitchboardError('server_unavailable', 'it was stopped'), undefined);
      default:
        return undefined;
    }
  }

  private setTimer(at: number | undefined): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.isDue = false;
    if (at === undefined) return;
    this.timer = setTimeout(() => this.becomeDue(), Math.max(0, at - Date.now()));
    this.timer.unref();
  }

  /** The timer's word counts, not the time of day: timers come up to a millisecond early, and clocks are set back. */
  private becomeDue(): void {
    this.isDue = true;
    this.events.due();
  }
}

function unavailable(
  server: string,
  reason: SwitchboardError | undefined,
  nextTry: number | undefined,
): SwitchboardError {
  const why = reason?.message ?? `Server "${server}" is not available`;
  const named = why.includes(`"${server}"`) ? why : `Server "${server}" is not available: ${why}`;
  const when = nextTry === undefined ? '' : ` (next try in ${secondsUntil(nextTry)})`;
  return new SwitchboardError('server_unavailable', `${named}${when}`, {
    cause: reason,
    data: {
      ...reason?.data,
      server,
      ...(nextTry === undefined ? {} : { nextTry: new Date(nextTry).toISOString() }),
    },
  });
}

function secondsUntil(time: number): string {
  const seconds = Math.max(0, time - Date.now()) / 1_000;
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
