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
    ['no notes for a healthy server', {}, ''],
    ['the reason', { state: 'failed', error: 'it exited' }, 'it exited'],
    [
      'the next retry',
      { state: 'backing_off', error: 'it exited', next_try: afterNoon(12_000) },
      'it exited · next try in 12 s',
    ],
    ['the items left out', { warning: 'its tools are cut\nat 5' }, 'its tools are cut at 5'],
    ['how many replicas are ready', { replicas: [...limping.replicas] }, '2 of 3 replicas ready'],
    ['running and queued calls', { in_flight: 4, queued: 2 }, '4 running, 2 waiting'],
    ['running calls without queued ones', { in_flight: 4 }, '4 running'],
    [
      'all notes together',
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
    ['the offer of a ready server', {}, '3 tools, 2 resources, 1 prompt'],
    ['how an idle server starts', { state: 'idle', tool_count: null }, 'starts on first use'],
    [
      'that a server starts after others',
      { state: 'idle', tool_count: null, startup: 'sequential' },
      'starts in its turn',
    ],
    ['how an idle server with known tools starts', { state: 'idle' }, 'starts on next use'],
    ['no reason for a server that starts again', { state: 'starting', error: 'it exited' }, ''],
    [
      'the reason and the end of a delay',
      { state: 'breaker_open', error: 'refused', next_try: afterNoon(60_000) },
      'refused · next try in 60 s',
    ],
    ['the remaining replicas', { ...limping, replicas: [...limping.replicas] }, '2 of 3 replicas ready'],
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
