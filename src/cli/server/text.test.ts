import { describe, expect, it } from 'vitest';
import { afterNoon, noon, replicaView, serverView } from '../../../test/helpers/server-view.ts';
import type { ServerEvent, ServerView } from '../../api/views.ts';
import { eventNotes, serverNotes, stateColumn, subjectOf } from './text.ts';

function eventOf(server: Partial<ServerView>, replica: number | null = null): ServerEvent {
  return { time: noon.toISOString(), server: serverView(server), replica, from: 'starting' };
}

const limping = {
  state: 'degraded',
  replicas: [
    replicaView(1),
    replicaView(2, { state: 'backing_off', error: 'it exited', next_try: afterNoon(4_000) }),
    replicaView(3),
  ],
} as const satisfies Partial<ServerView>;

describe('serverNotes', () => {
  it.each<[string, Partial<ServerView>, string]>([
    ['nothing where all is well', {}, ''],
    ['the reason', { state: 'failed', error: 'it exited' }, 'it exited'],
    [
      'the next try',
      { state: 'backing_off', error: 'it exited', next_try: afterNoon(12_000) },
      'it exited · next try in 12 s',
    ],
    ['what is left out', { warning: 'its tools are cut\nat 5' }, 'its tools are cut at 5'],
    ['how many replicas are ready', { replicas: [...limping.replicas] }, '2 of 3 replicas ready'],
    ['what runs and what waits', { in_flight: 4, queued: 2 }, '4 running, 2 waiting'],
    ['what runs, where nothing waits', { in_flight: 4 }, '4 running'],
    [
      'all of it',
      {
        replicas: [...limping.replicas],
        in_flight: 1,
        error: 'it exited',
        next_try: afterNoon(1_000),
      },
      '2 of 3 replicas ready · 1 running · it exited · next try in 1 s',
    ],
  ])('shows %s', (_what, server, notes) => {
    expect(serverNotes(serverView(server), noon)).toBe(notes);
  });

  it.each([
    [-5_000, 'next try now'],
    [0, 'next try now'],
    [1, 'next try in 1 s'],
    [3_001, 'next try in 4 s'],
    [120_000, 'next try in 120 s'],
    [120_001, 'next try in 3 min'],
    [300_000, 'next try in 5 min'],
  ])('shows a retry in %d ms as "%s"', (milliseconds, text) => {
    expect(serverNotes(serverView({ next_try: afterNoon(milliseconds) }), noon)).toBe(text);
  });

  it('keeps a reason on one line, without terminal control characters', () => {
    const error = 'first\r\n  second \u001b[2J\u0007third\n';
    expect(serverNotes(serverView({ error }), noon)).toBe('first second \\u001b[2J\\u0007third');
  });
});

describe('eventNotes', () => {
  it.each<[string, Partial<ServerView>, string]>([
    ['what a ready server offers', {}, '3 tools, 2 resources, 1 prompt'],
    ['that an idle one starts', { state: 'idle', tool_count: null }, 'starts on first use'],
    [
      'that one starts after others',
      { state: 'idle', tool_count: null, startup: 'sequential' },
      'starts in its turn',
    ],
    ['that one rests', { state: 'idle' }, 'starts on next use'],
    ['nothing of why one is started again', { state: 'starting', error: 'it exited' }, ''],
    [
      'why and until when it waits',
      { state: 'breaker_open', error: 'refused', next_try: afterNoon(60_000) },
      'refused · next try in 60 s',
    ],
    ['how many replicas are left', { ...limping, replicas: [...limping.replicas] }, '2 of 3 replicas ready'],
  ])('shows %s', (_what, server, notes) => {
    expect(eventNotes(eventOf(server))).toBe(notes);
  });

  it('names the replica that changed', () => {
    expect(eventNotes(eventOf({ ...limping, replicas: [...limping.replicas] }, 2))).toBe(
      'it exited · next try in 4 s',
    );
  });
});

it('an event of one of several replicas is about that replica', () => {
  const event = eventOf({ ...limping, replicas: [...limping.replicas] }, 2);
  expect(subjectOf(event)).toMatchObject({ label: 'github/2', state: 'backing_off', error: 'it exited' });
  expect(subjectOf({ ...event, replica: null })).toMatchObject({ label: 'github', state: 'degraded' });
});

it('the state is a column of words, colored on request', () => {
  expect(stateColumn('backing_off', false)).toBe('backing off ');
  expect(stateColumn('breaker_open', false)).toBe('breaker open');
  expect(stateColumn('ready', true)).toBe('\u001b[32mready       \u001b[39m');
});
