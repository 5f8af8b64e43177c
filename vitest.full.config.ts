import { defineConfig } from 'vitest/config';
import { patienceMs } from './test/helpers/patience.ts';
import short, { longRuns } from './vitest.config.ts';

const { projects: _, ...settings } = short.test!;

export default defineConfig({
  test: { ...settings, include: [longRuns], exclude: ['**/node_modules/**'], testTimeout: 5 * patienceMs },
});
