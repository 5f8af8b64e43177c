import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

const isRelativeImport = /(?:from |import\()['"](\.[^'"]+)\.ts['"]/g;

/** Writes what the types of the library are, for its users; `entries` are the files that they import. */
export function writeDeclarations(root, entries) {
  const folder = join(root, 'dist', 'types');
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  execFileSync(process.execPath, [compiler, '-p', join(root, 'scripts', 'tsconfig.types.json')], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  // The compiler writes those of everything that is used inside, too.
  const used = new Set();
  for (const entry of entries) follow(join(folder, `${entry}.d.ts`), used);
  for (const found of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(found.parentPath ?? found.path, found.name);
    if (found.isFile() && !used.has(path)) rmSync(path);
  }
}

function follow(path, used) {
  if (used.has(path)) return;
  used.add(path);
  for (const [, target] of readFileSync(path, 'utf8').matchAll(isRelativeImport))
    follow(join(dirname(path), `${target}.d.ts`), used);
}
