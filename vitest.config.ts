import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/global/postgres.ts', 'test/global/docker.ts'],
    // Whoever tests with a database says which.
    env: { DATABASE_URL: 'none' },
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
