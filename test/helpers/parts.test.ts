import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findPart, requirePart } from './parts.ts';

describe('the programs for tests', () => {
  let folder: string;
  const test = {
    skip(note: string): never {
      throw new Error(`skipped: ${note}`);
    },
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'switchboard-parts-'));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it('are found where setup installed them', () => {
    writeFileSync(
      join(folder, 'uvx.json'),
      JSON.stringify({ command: '/opt/uvx', env: { UV_OFFLINE: '1' } }),
    );
    expect(requirePart('uvx', test, folder)).toEqual({ command: '/opt/uvx', env: { UV_OFFLINE: '1' } });
  });

  it('report that setup has not run', () => {
    expect(findPart('uvx', folder)).toEqual({ missing: 'node scripts/setup.mjs --test has not run' });
  });

  it('skip the test if one is missing, with the reason', () => {
    vi.stubEnv('CI', '');
    writeFileSync(join(folder, 'uvx.json'), JSON.stringify({ missing: 'python3 is not installed' }));
    expect(() => requirePart('uvx', test, folder)).toThrow('skipped: needs uvx: python3 is not installed');
  });

  it('fail the test in CI', () => {
    vi.stubEnv('CI', 'true');
    writeFileSync(join(folder, 'uvx.json'), JSON.stringify({ missing: 'python3 is not installed' }));
    expect(() => requirePart('uvx', test, folder)).toThrow('CI needs uvx: python3 is not installed');
  });
});
