import { SwitchboardError } from '../errors.ts';
import {
  type Condition,
  initialCondition,
  type LifecycleEvent,
  next,
  type RecoveryPolicy,
  startsPromptly,
} from './condition.ts';

interface LifecycleEvents {
  /** The state, its reason or the next try changed. */
  changed(): void;
  /** The next try is due. */
  due(): void;
}

/** The condition of one connection, and the timer of its next try. */
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

  apply(event: LifecycleEvent): void {
    const before = this.condition;
    const after = next(before, event, Date.now(), this.policy, Math.random());
    if (after === before) return;
    this.condition = after;
    if (after.nextTry !== before.nextTry) this.setTimer(after.nextTry);
    const isSame =
      after.state === before.state && after.reason === before.reason && after.nextTry === before.nextTry;
    if (!isSame) this.events.changed();
  }

  /** Why it cannot be started now; undefined if it can. */
  notYet(server: string): SwitchboardError | undefined {
    const { nextTry } = this.condition;
    const isTryDue = this.isDue || (nextTry !== undefined && nextTry <= Date.now());
    return this.isWaiting && isTryDue ? undefined : this.refusal(server);
  }

  /** Why no call can be sent now or wait for a start; undefined if it can. */
  refusal(server: string): SwitchboardError | undefined {
    const { condition } = this;
    switch (condition.state) {
      case 'starting':
        return condition.isAwaited ? undefined : unavailable(server, condition);
      case 'backing_off':
      case 'breaker_open':
        return startsPromptly(condition) ? undefined : unavailable(server, condition);
      case 'failed':
        return condition.reason;
      case 'stopped':
        return stopped(server);
      default:
        return undefined;
    }
  }

  private get isWaiting(): boolean {
    const { state } = this.condition;
    return state === 'backing_off' || state === 'breaker_open';
  }

  private setTimer(at: number | undefined): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.isDue = false;
    if (at === undefined) return;
    this.timer = setTimeout(() => this.becomeDue(), Math.max(0, at - Date.now()));
    this.timer.unref();
  }

  /** Trusts the timer instead of the clock: timers fire up to a millisecond early, and clocks are set back. */
  private becomeDue(): void {
    this.isDue = true;
    this.events.due();
  }
}

function unavailable(server: string, { state, since, reason, nextTry }: Condition): SwitchboardError {
  const why = reason?.message ?? `Server "${server}" is not available`;
  const named = why.includes(`"${server}"`) ? why : `Server "${server}" is not available: ${why}`;
  const when =
    nextTry === undefined
      ? `connecting again for ${seconds(Date.now() - since)}`
      : `${state.replace('_', ' ')}, next try in ${seconds(nextTry - Date.now())}`;
  return new SwitchboardError('server_unavailable', `${named} (${when})`, {
    cause: reason,
    data: {
      ...reason?.data,
      server,
      state,
      ...(nextTry === undefined ? {} : { nextTry: new Date(nextTry).toISOString() }),
    },
  });
}

function stopped(server: string): SwitchboardError {
  return new SwitchboardError('server_unavailable', `Server "${server}" is not available: it was stopped`, {
    data: { server },
  });
}

function seconds(ms: number): string {
  const count = Math.max(0, ms) / 1_000;
  return `${count < 10 ? count.toFixed(1) : Math.round(count)} s`;
}
