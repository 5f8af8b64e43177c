import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const program = fileURLToPath(new URL('../../test/fixtures/holds-policy.ts', import.meta.url));

it('a policy of 10,000 principals with 1,000 keys is small, and is replaced without a pause', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', program]);
  const { bytes, times, permissions } = JSON.parse(stdout) as {
    bytes: number;
    times: number[];
    permissions: number;
  };
  expect(permissions).toBe(5);
  expect(bytes).toBeLessThan(20 * 1024 * 1024);
  // CPU time, which other programs do not lengthen; other garbage may.
  expect(times.toSorted((one, other) => one - other)[times.length >> 1]).toBeLessThan(100);
});
