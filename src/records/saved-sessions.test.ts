import { afterEach, expect, it, vi } from 'vitest';
import type { PersistedSession } from '../gateway/legacy/persistence.ts';
import type { SessionRow } from '../store/restart-state.ts';
import { SavedSessions } from './saved-sessions.ts';

afterEach(() => vi.useRealTimers());

const facts = { version: '2025-11-25', capabilities: {}, name: 'x', clientInfo: {} } as const;
const session: PersistedSession = { project: undefined, facts, logLevel: undefined, followed: ['a:1'] };

function open(rows = new Map<string, SessionRow>()) {
  vi.useFakeTimers();
  const done: string[] = [];
  const seen: number[] = [];
  let isAway = false;
  let whileWriting = () => {};
  let beforeForgetting: Promise<void> | undefined;
  const sessions = new SavedSessions({
    table: {
      seenWithin: async () => [...rows.values()],
      async save(kept) {
        if (isAway) throw new Error('away');
        done.push(`keep ${kept.length}`);
        for (const row of kept) rows.set(row.id_hash, row);
        whileWriting();
      },
      async touch(hashes) {
        seen.push(hashes.length);
      },
      async delete(hashes) {
        await beforeForgetting;
        if (isAway) throw new Error('away');
        done.push(`forget ${hashes.length}`);
        for (const hash of hashes) rows.delete(hash);
      },
    },
    maxSessions: 10,
    sessionIdleMs: 30_000,
  });
  return {
    sessions,
    rows,
    done,
    seen,
    goAway: (away: boolean) => {
      isAway = away;
    },
    holdForgetting: (until: Promise<void>) => {
      beforeForgetting = until;
    },
    meanwhile: (work: () => void) => {
      whileWriting = work;
    },
  };
}

it('writes a session once, in a batch, and skips those that end soon', async () => {
  const { sessions, done } = open();
  for (const id of ['one', 'two', 'three']) sessions.save(id, () => session);
  sessions.save('one', () => session);
  sessions.delete('two');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(done).toEqual(['keep 2']);
  sessions.delete('three');
  sessions.delete('unknown');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(done).toEqual(['keep 2', 'forget 1']);
});

it('removes a session that ends while it is written', async () => {
  const { sessions, rows, meanwhile } = open();
  meanwhile(() => sessions.delete('one'));
  sessions.save('one', () => session);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(rows.size).toBe(0);
});

it('writes a session when the database is back', async () => {
  const { sessions, rows, goAway } = open();
  goAway(true);
  sessions.save('one', () => session);
  await vi.advanceTimersByTimeAsync(2_000);
  goAway(false);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(rows.size).toBe(1);
});

it('restores a session once, for a limited time, by its id, which is not persisted', async () => {
  const { sessions, rows } = open();
  for (const id of ['one', 'two']) sessions.save(id, () => session);
  await sessions.close();
  // After close, sessions end because the program does, so they stay persisted.
  sessions.delete('one');
  expect(JSON.stringify([...rows])).not.toContain('one');

  const { sessions: next, seen } = open(rows);
  await next.load();
  expect(next.take('three', undefined)).toBeUndefined();
  expect(next.take('one', 'of-another')).toBeUndefined();
  expect(next.take('one', undefined)).toEqual(session);
  expect(next.take('one', undefined)).toBeUndefined();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(seen).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(next.take('two', undefined)).toBeUndefined();
});

it('deletes a session at once if its client waits, in a batch', async () => {
  const { sessions, rows, done } = open();
  for (const id of ['one', 'two', 'three']) sessions.save(id, () => session);
  expect(sessions.deleted()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1_000);
  sessions.delete('one');
  const first = sessions.deleted();
  sessions.delete('two');
  await Promise.all([first, sessions.deleted()]);
  expect(rows.size).toBe(1);
  expect(done).toEqual(['keep 3', 'forget 2']);
  expect(sessions.deleted()).toBeUndefined();
});

it('deletes a session that ends while it is written before its client gets the response', async () => {
  const { sessions, rows, meanwhile } = open();
  let gone: Promise<void> | undefined;
  meanwhile(() => {
    sessions.delete('one');
    gone = sessions.deleted()?.then(() => expect(rows.size).toBe(0));
  });
  sessions.save('one', () => session);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(gone).toBeDefined();
  await gone;
});

it('does not wait for a database that is unavailable or does not respond', async () => {
  const { sessions, rows, goAway, holdForgetting } = open();
  for (const id of ['one', 'two']) sessions.save(id, () => session);
  await vi.advanceTimersByTimeAsync(1_000);
  goAway(true);
  sessions.delete('one');
  await sessions.deleted();
  expect(rows.size).toBe(2);
  goAway(false);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(rows.size).toBe(1);
  const { promise, resolve } = Promise.withResolvers<void>();
  holdForgetting(promise);
  sessions.delete('two');
  const waited = sessions.deleted();
  await vi.advanceTimersByTimeAsync(3_000);
  await waited;
  expect(rows.size).toBe(1);
  resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(rows.size).toBe(0);
});
