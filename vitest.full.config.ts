import { defineConfig } from 'vitest/config';
import { patienceMs } from './test/helpers/patience.ts';
import short, { longRuns } from './vitest.config.ts';

const { projects: _, ...settings } = short.test!;
const exclude = ['**/node_modules/**'];

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
    ],
  },
});
