import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { patienceMs } from './test/helpers/patience.ts';

/** Long runs: `npm run test:full` does them, `npm test` a small version of each. */
export const longRuns = '**/*.full.test.ts';

const exclude = ['**/node_modules/**', longRuns];

export default defineConfig({
  test: {
    globalSetup: ['test/global/postgres.ts', 'test/global/docker.ts', 'test/global/programs.ts'],
    // A test with a database says which.
    env: { DATABASE_URL: 'none' },
    // Most tests wait for other processes most of the time: some files more than there are cores leave none of them idle.
    maxWorkers: availableParallelism() + 2,
    testTimeout: patienceMs,
    hookTimeout: patienceMs,
    expect: { poll: { timeout: patienceMs, interval: 20 } },
    projects: [
      // Single parts, which leave nothing behind: a worker takes one file after the other.
      { extends: true, test: { name: 'parts', include: ['src/**/*.test.ts'], exclude, isolate: false } },
      { extends: true, test: { name: 'programs', include: ['test/**/*.test.ts'], exclude } },
    ],
  },
});
