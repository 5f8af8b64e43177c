import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { patienceMs } from './test/helpers/patience.ts';

/** Long runs: `npm run test:full` does them, `npm test` a small version of each. */
const long = '**/*.full.test.ts';
const isFull = process.env.TEST_SUITE === 'full';

export default defineConfig({
  test: {
    include: isFull ? [`src/${long}`, `test/${long}`] : ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', ...(isFull ? [] : [long])],
    globalSetup: ['test/global/postgres.ts', 'test/global/docker.ts', 'test/global/programs.ts'],
    // A test with a database says which.
    env: { DATABASE_URL: 'none' },
    // Most tests wait for other processes most of the time: one file more than there are cores leaves none of them idle.
    maxWorkers: availableParallelism() + 1,
    testTimeout: isFull ? 4 * patienceMs : patienceMs,
    hookTimeout: patienceMs,
    expect: { poll: { timeout: patienceMs, interval: 20 } },
  },
});
