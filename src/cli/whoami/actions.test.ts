import { expect, it } from 'vitest';
import type { WhoamiView } from '../../api/access-views.ts';
import { whoamiText } from './actions.ts';

const now = new Date('2030-01-01T00:00:00Z');
const local: WhoamiView = {
  ...{
    kind: 'local',
    id: 'local',
    name: 'local user',
    expires_at: null,
    address: null,
    authentication: false,
  },
  ...{ roles: [{ project: null, role: 'admin' }], groups: [] },
};

it('shows the local user', () => {
  expect(whoamiText(local, false, now).split('\n')).toEqual([
    'name            local user',
    'kind            local',
    'roles           admin in all projects',
    'credential      the user of this machine who runs Switchboard',
    'authentication  off: no key is asked for',
  ]);
  expect(whoamiText(local, true, now)).toContain('SWITCHBOARD_KEY was sent, but not asked for');
});

it('shows a key with its roles and groups', () => {
  const key: WhoamiView = {
    ...{ kind: 'key', id: 'k1', name: 'ci', expires_at: '2030-01-03T00:00:00.000Z', address: '192.0.2.1' },
    ...{ authentication: true, groups: [{ id: 'g1', name: 'builders' }] },
    roles: [
      { project: null, role: 'viewer' },
      { project: { id: 'p1', name: 'research' }, role: 'caller' },
    ],
  };
  expect(whoamiText(key, true, now).split('\n')).toEqual([
    ...['name            ci', 'kind            key', 'id              k1'],
    ...['roles           viewer in all projects', '                caller in research'],
    ...['groups          builders', expect.stringMatching(/^expires .*\(in 2 days\)$/)],
    ...['credential      SWITCHBOARD_KEY', 'address         192.0.2.1'],
    'authentication  on: every request needs a key',
  ]);
});
