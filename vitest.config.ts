import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/global/postgres.ts', 'test/global/docker.ts', 'test/global/programs.ts'],
    // Whoever tests with a database says which.
    env: { DATABASE_URL: 'none' },
    // Most tests wait for other processes most of the time: one file more than there are cores leaves none of them idle.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
