import { type BackoffRule, backoffMs } from '../channels/timing.ts';
import type { SwitchboardError } from '../errors.ts';

/** The state of a connection; docs/states.md shows the transitions. */
export type State =
  | 'idle'
  | 'starting'
  | 'ready'
  | 'degraded'
  | 'backing_off'
  | 'breaker_open'
  | 'failed'
  | 'stopped';

export interface Condition {
  readonly state: State;
  readonly since: number;
  /** Why it is not ready, or only degraded. */
  readonly reason: SwitchboardError | undefined;
  /** When the next automatic try is due. */
  readonly nextTry: number | undefined;
  /** Consecutive failures. */
  readonly failedConnects: number;
  /** How often it was lost since it was last stable. */
  readonly losses: number;
  readonly connectedAt: number;
  /** Whether calls wait for the current start. They do not wait for a retry. */
  readonly isAwaited: boolean;
}

export type LifecycleEvent =
  /** `isHastened`: the obstacle is gone, so the next try is not awaited. */
  | { kind: 'starts'; isHastened?: boolean }
  /** The handshake is done, but the lists are not fetched yet. */
  | { kind: 'connected' }
  | { kind: 'ready' }
  /** It can be called, but has a problem, which is checked again at `nextTry`. */
  | { kind: 'impaired'; reason: SwitchboardError; nextTry: number }
  | { kind: 'connect failed'; reason: SwitchboardError }
  /** Unusable until its configuration changes. */
  | { kind: 'unusable'; reason: SwitchboardError }
  /** It leads back to us. The cause may be fixed elsewhere, without notice to us. */
  | { kind: 'loops'; reason: SwitchboardError }
  /** `isThere`: the server still runs, but has lost our session. */
  | { kind: 'lost'; reason: SwitchboardError; isThere: boolean }
  /** It was idle for too long. */
  | { kind: 'rests' }
  | { kind: 'stops' };

export interface RecoveryPolicy {
  backoff: BackoffRule;
  /** This many consecutive failed connects open the breaker. */
  breakerFailures: number;
  breakerOpenMs: number;
}

/** The loss of a connection that lasted this long does not count against the server. */
const STABLE_MS = 10_000;

/** A server under development restarts often: this many short sessions in a row are reconnected at once. */
const FREE_RETURNS = 3;

/** The events that each state accepts. Others come too late and are ignored. */
const acceptedEvents: Record<State, readonly LifecycleEvent['kind'][]> = {
  idle: ['starts', 'stops'],
  starting: ['connected', 'ready', 'impaired', 'connect failed', 'unusable', 'loops', 'lost', 'stops'],
  ready: ['impaired', 'loops', 'lost', 'rests', 'stops'],
  degraded: ['ready', 'impaired', 'loops', 'lost', 'rests', 'stops'],
  backing_off: ['starts', 'stops'],
  breaker_open: ['starts', 'stops'],
  failed: ['stops'],
  stopped: [],
};

export function initialCondition(now: number): Condition {
  return {
    state: 'idle',
    since: now,
    reason: undefined,
    nextTry: undefined,
    failedConnects: 0,
    losses: 0,
    connectedAt: 0,
    isAwaited: false,
  };
}

/** The state machine. `random` is in [0, 1). */
export function next(
  before: Condition,
  event: LifecycleEvent,
  now: number,
  policy: RecoveryPolicy,
  random: number,
): Condition {
  if (!acceptedEvents[before.state].includes(event.kind)) return before;
  const enter = (state: State, more: Partial<Condition> = {}): Condition => ({
    ...before,
    state,
    since: state === before.state ? before.since : now,
    reason: undefined,
    nextTry: undefined,
    ...more,
  });
  switch (event.kind) {
    case 'starts':
      // Keeps the reason of the restart until it is ready.
      return enter('starting', {
        reason: before.reason,
        isAwaited: event.isHastened === true || startsPromptly(before),
      });
    case 'connected':
      return { ...before, failedConnects: 0, connectedAt: now };
    case 'ready':
      return enter('ready');
    case 'impaired':
      return enter('degraded', { reason: event.reason, nextTry: event.nextTry });
    case 'connect failed': {
      const { reason } = event;
      const failedConnects = before.failedConnects + 1;
      if (failedConnects >= policy.breakerFailures) {
        return enter('breaker_open', { reason, failedConnects, nextTry: now + policy.breakerOpenMs });
      }
      const nextTry = now + backoffMs(failedConnects, policy.backoff, random);
      return enter('backing_off', { reason, failedConnects, nextTry });
    }
    case 'unusable':
      return enter('failed', { reason: event.reason });
    case 'loops': {
      const longest = backoffMs(Number.POSITIVE_INFINITY, policy.backoff, random);
      return enter('backing_off', { reason: event.reason, nextTry: now + longest });
    }
    case 'lost': {
      const { reason } = event;
      const losses = now - before.connectedAt >= STABLE_MS ? 1 : before.losses + 1;
      // The first losses are reconnected at once, later ones with backoff.
      const free = event.isThere ? FREE_RETURNS : 1;
      const delayMs = losses <= free ? 0 : backoffMs(losses - free, policy.backoff, random);
      return enter('backing_off', { reason, losses, nextTry: now + delayMs });
    }
    case 'rests':
      return enter('idle', { losses: 0 });
    case 'stops':
      return enter('stopped');
  }
}

/** Whether the next start is the first one, or an immediate reconnect. */
export function startsPromptly({ state, since, nextTry, failedConnects }: Condition): boolean {
  return state === 'idle' || (failedConnects === 0 && nextTry === since);
}

/** Best first. */
const ranking: readonly State[] = [
  'ready',
  'degraded',
  'starting',
  'idle',
  'backing_off',
  'breaker_open',
  'failed',
  'stopped',
];

/** Combines conditions: the best one, but degraded if that is ready and another has a problem. */
export function overall(conditions: readonly Condition[]): Condition {
  const best = nearest(conditions);
  if (best === undefined) throw new Error('A server has at least one replica.');
  if (best.state !== 'ready') return best;
  const trouble = nearest(
    conditions.filter(({ nextTry, state }) => nextTry !== undefined || state === 'failed'),
  );
  return trouble === undefined ? best : { ...trouble, state: 'degraded' };
}

/** The first of the best. One pass: there may be a condition for each client. */
function nearest(conditions: readonly Condition[]): Condition | undefined {
  let found: Condition | undefined;
  let rank = ranking.length;
  for (const condition of conditions) {
    const at = ranking.indexOf(condition.state);
    if (at >= rank) continue;
    found = condition;
    rank = at;
  }
  return found;
}
