import { defineConfig } from 'vitest/config';
import { patienceMs } from './test/helpers/patience.ts';
import short, { longRuns } from './vitest.config.ts';

const { projects: _, ...settings } = short.test!;
const exclude = ['**/node_modules/**'];

/** What every client does. */
const core = ['tools', 'resources', 'subscriptions', 'list-changes', 'everything'].map(
  (name) => `test/e2e/${name}.test.ts`,
);
const more = [
  ...['questions', 'groups', 'groups-balance', 'tasks', 'naming', 'queue', 'http-sessions'].map(
    (name) => `test/e2e/${name}.test.ts`,
  ),
  ...['rounds', 'held-calls', 'listen'].map((name) => `test/eras/${name}.test.ts`),
];

/** The same tests with authentication, and clients with a key of this role. */
function withKey(role: string, include: string[]) {
  return { extends: true as const, test: { name: role, include, exclude, env: { TEST_ROLE: role } } };
}

export default defineConfig({
  test: {
    ...settings,
    testTimeout: 5 * patienceMs,
    projects: [
      { extends: true, test: { name: 'long', include: [longRuns], exclude } },
      // What `npm test` shows over a server's database, over that of Switchboard itself.
      {
        extends: true,
        test: {
          name: 'embedded',
          include: ['test/projects/*.test.ts'],
          exclude,
          env: { TEST_DATABASE: 'embedded' },
        },
      },
      withKey('caller', [...core, ...more]),
      ...['operator', 'owner', 'admin'].map((role) => withKey(role, core)),
    ],
  },
});
