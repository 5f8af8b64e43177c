import { type BackoffRule, backoffMs } from '../channels/timing.ts';
import type { SwitchboardError } from '../errors.ts';

/** The one state of a connection; docs/states.md draws how they follow each other. */
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
  /** Why it is not simply ready. */
  readonly reason: SwitchboardError | undefined;
  /** When it is tried again by itself. */
  readonly nextTry: number | undefined;
  /** Connects that failed, one after the other. */
  readonly failedConnects: number;
  /** How often it was lost since it last stayed for a while. */
  readonly losses: number;
  readonly connectedAt: number;
  /** Whether calls wait for the start that is under way. They do not wait for a retry. */
  readonly isAwaited: boolean;
}

export type LifecycleEvent =
  /** `isHastened`: what was in its way is gone, so it does not wait for its next try. */
  | { kind: 'starts'; isHastened?: boolean }
  /** The handshake is done; what it offers is not known yet. */
  | { kind: 'connected' }
  | { kind: 'ready' }
  /** It is there and can be called, but something is wrong with it, which is looked at again at that time. */
  | { kind: 'impaired'; reason: SwitchboardError; nextTry: number }
  | { kind: 'connect failed'; reason: SwitchboardError }
  /** It cannot be used before its configuration changes. */
  | { kind: 'unusable'; reason: SwitchboardError }
  /** It leads back to us. That may be mended elsewhere, where nobody tells us of it. */
  | { kind: 'loops'; reason: SwitchboardError }
  /** `isThere`: the server is still there, it only knows us no more. */
  | { kind: 'lost'; reason: SwitchboardError; isThere: boolean }
  /** Nobody has used it for long. */
  | { kind: 'rests' }
  | { kind: 'stops' };

export interface RecoveryPolicy {
  backoff: BackoffRule;
  /** So many failed connects in a row open the breaker. */
  breakerFailures: number;
  breakerOpenMs: number;
}

/** A connection that stayed for this long was a good one: losing it is not held against the server. */
const STABLE_MS = 10_000;

/** A server that is restarted over and over, while somebody works on it, may forget us so often in that time. */
const FREE_RETURNS = 3;

/** What means something in which state. Everything else comes too late and changes nothing. */
const heard: Record<State, readonly LifecycleEvent['kind'][]> = {
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

/** The whole state machine: what a happening makes of a condition. `random` is in [0, 1). */
export function next(
  before: Condition,
  happening: LifecycleEvent,
  now: number,
  policy: RecoveryPolicy,
  random: number,
): Condition {
  if (!heard[before.state].includes(happening.kind)) return before;
  const enter = (state: State, more: Partial<Condition> = {}): Condition => ({
    ...before,
    state,
    since: state === before.state ? before.since : now,
    reason: undefined,
    nextTry: undefined,
    ...more,
  });
  switch (happening.kind) {
    case 'starts':
      // Why it had to be started again stays known until it is there.
      return enter('starting', {
        reason: before.reason,
        isAwaited: happening.isHastened === true || startsPromptly(before),
      });
    case 'connected':
      return { ...before, failedConnects: 0, connectedAt: now };
    case 'ready':
      return enter('ready');
    case 'impaired':
      return enter('degraded', { reason: happening.reason, nextTry: happening.nextTry });
    case 'connect failed': {
      const { reason } = happening;
      const failedConnects = before.failedConnects + 1;
      if (failedConnects >= policy.breakerFailures) {
        return enter('breaker_open', { reason, failedConnects, nextTry: now + policy.breakerOpenMs });
      }
      const nextTry = now + backoffMs(failedConnects, policy.backoff, random);
      return enter('backing_off', { reason, failedConnects, nextTry });
    }
    case 'unusable':
      return enter('failed', { reason: happening.reason });
    case 'loops': {
      const longest = backoffMs(Number.POSITIVE_INFINITY, policy.backoff, random);
      return enter('backing_off', { reason: happening.reason, nextTry: now + longest });
    }
    case 'lost': {
      const { reason } = happening;
      const losses = now - before.connectedAt >= STABLE_MS ? 1 : before.losses + 1;
      // The first loss is made good at once; whoever is lost again and again has to wait.
      const free = happening.isThere ? FREE_RETURNS : 1;
      const delayMs = losses <= free ? 0 : backoffMs(losses - free, policy.backoff, random);
      return enter('backing_off', { reason, losses, nextTry: now + delayMs });
    }
    case 'rests':
      return enter('idle', { losses: 0 });
    case 'stops':
      return enter('stopped');
  }
}

/** Whether its next start is a first one, or makes a loss good at once. */
export function startsPromptly({ state, since, nextTry, failedConnects }: Condition): boolean {
  return state === 'idle' || (failedConnects === 0 && nextTry === since);
}

/** The nearer to being ready, the earlier. */
const nearness: readonly State[] = [
  'ready',
  'degraded',
  'starting',
  'idle',
  'backing_off',
  'breaker_open',
  'failed',
  'stopped',
];

/** Several conditions as one: that of the best, but degraded where it could be called ready and others are in trouble. */
export function overall(conditions: readonly Condition[]): Condition {
  const best = nearest(conditions);
  if (best === undefined) throw new Error('A server has at least one replica.');
  if (best.state !== 'ready') return best;
  const trouble = nearest(
    conditions.filter(({ nextTry, state }) => nextTry !== undefined || state === 'failed'),
  );
  return trouble === undefined ? best : { ...trouble, state: 'degraded' };
}

/** The first of those that are nearest. One pass: there may be a condition for each client. */
function nearest(conditions: readonly Condition[]): Condition | undefined {
  let found: Condition | undefined;
  let place = nearness.length;
  for (const condition of conditions) {
    const at = nearness.indexOf(condition.state);
    if (at >= place) continue;
    found = condition;
    place = at;
  }
  return found;
}
