import { expect, it } from 'vitest';
import { afterNoon, noon, serverView } from '../../../test/helpers/server-view.ts';
import { missingText, serverRow } from './ls.ts';

it('shows a server as a row of name, state, transport, tools and notes', () => {
  const server = serverView({ state: 'breaker_open', error: 'refused', next_try: afterNoon(12_000) });
  expect(serverRow(server, noon)).toEqual([
    'github',
    'breaker open',
    'http',
    '3 tools',
    'refused · next try in 12 s',
  ]);
});

it('shows no tool count for a server that never connected', () => {
  expect(serverRow(serverView({ state: 'idle', tool_count: null }), noon)).toEqual([
    'github',
    'idle',
    'http',
    '',
    '',
  ]);
});

it('names an unknown server with its project, unless that is the default', () => {
  const starting = serverView({ state: 'starting', tool_count: null, project: 'default' });
  expect(missingText(starting)).toBe('github is not included: it is still starting');
  expect(missingText({ ...starting, project: 'web' })).toBe(
    'github of project web is not included: it is still starting',
  );
  const failed = { ...starting, state: 'failed', error: 'it exited' } as const;
  expect(missingText(failed)).toBe('github is not included (failed): it exited');
});
