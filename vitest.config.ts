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
    // Test files leave nothing behind, so a worker takes one after the other: a new worker for each file costs 0.6 s of CPU.
    isolate: false,
    projects: [
      { extends: true, test: { name: 'parts', include: ['src/**/*.test.ts'], exclude } },
      { extends: true, test: { name: 'programs', include: ['test/**/*.test.ts'], exclude } },
    ],
  },
});
