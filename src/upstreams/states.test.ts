import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import { type Condition, initialCondition, type LifecycleEvent, next, type State } from './condition.ts';

const policy = { backoff: { firstMs: 1_000, maxMs: 30_000 }, breakerFailures: 3, breakerOpenMs: 60_000 };
const reason = new SwitchboardError('server_unavailable', 'gone');
const happenings: Record<LifecycleEvent['kind'], LifecycleEvent> = {
  starts: { kind: 'starts' },
  connected: { kind: 'connected' },
  ready: { kind: 'ready' },
  impaired: { kind: 'impaired', reason, nextTry: 7 },
  'connect failed': { kind: 'connect failed', reason },
  unusable: { kind: 'unusable', reason },
  loops: { kind: 'loops', reason },
  lost: { kind: 'lost', reason, isThere: false },
  rests: { kind: 'rests' },
  stops: { kind: 'stops' },
};
const kinds = Object.keys(happenings) as LifecycleEvent['kind'][];

const document = readFileSync(new URL('../../docs/states.md', import.meta.url), 'utf8');
const drawn = new Set(
  [...document.matchAll(/^ {2}(\w+) --> (\w+): (.+)$/gm)].map(([, from, to, why]) => edge(from!, why!, to!)),
);

function edge(from: string, why: string, to: string): string {
  return `${from} --> ${to}: ${why}`;
}

/** All reachable transitions, each state with every relevant number of failures. */
function explore(): { edges: Set<string>; states: Set<State> } {
  const edges = new Set<string>();
  const known = new Map<string, Condition>();
  const open = [initialCondition(0)];
  for (let before = open.pop(); before !== undefined; before = open.pop()) {
    for (const kind of kinds) {
      const after = next(before, happenings[kind], 1, policy, 0);
      if (after === before) continue;
      edges.add(edge(before.state, kind, after.state));
      const failures = Math.min(after.failedConnects, policy.breakerFailures);
      const key = `${after.state} ${failures}`;
      if (!known.has(key)) open.push(after);
      known.set(key, after);
    }
  }
  return { edges, states: new Set([...known.values()].map(({ state }) => state)) };
}

describe('docs/states.md', () => {
  const { edges, states } = explore();

  it('draws every transition, and no other', () => {
    expect([...drawn].toSorted()).toEqual([...edges].toSorted());
  });

  it('explains every state and every event', () => {
    const rows = [...document.matchAll(/^\| `(\w+)` \|/gm)].map(([, state]) => state);
    expect(rows.toSorted()).toEqual([...states].toSorted());
    const words = [...document.matchAll(/^\| ([a-z ]+) \|/gm)].map(([, word]) => word);
    for (const kind of kinds) expect(words).toContain(kind);
  });

  it('covers every transition of any sequence of events at any times', () => {
    const step = fc.record({ kind: fc.constantFrom(...kinds), pauseMs: fc.nat({ max: 100_000 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.double({ min: 0, max: 0.99 }), (steps, chance) => {
        let now = 0;
        let before = initialCondition(now);
        for (const { kind, pauseMs } of steps) {
          now += pauseMs;
          const after = next(before, happenings[kind], now, policy, chance);
          if (after !== before) expect(drawn).toContain(edge(before.state, kind, after.state));
          before = after;
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
