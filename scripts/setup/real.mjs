import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastLine } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';
import { looksLikeNetworkTrouble, run } from './run.mjs';
import { makeUvVenv } from './uv.mjs';

// The servers and clients of test/real that npm does not install. Where one cannot be had, that is written down for
// test/helpers/parts.ts and not thrown.

/** An environment with the packages of test/real/python/<name>.txt; the part's command is its Python. */
export function pythonStep(cache, root, name) {
  const requirements = join(root, 'test', 'real', 'python', `${name}.txt`);
  const part = `python-${name}`;
  const recipe = hashOf([requirements]);
  return {
    done: () => partIsCurrent(cache, part, recipe),
    run: async () => {
      const venv = join(cache, part);
      console.log(`setup: installing test/real/python/${name}.txt from PyPI into .cache/${part}`);
      const missing = await makeUvVenv(cache, venv, ['--requirement', requirements]);
      const command = join(venv, 'bin', 'python');
      record(cache, part, missing === undefined ? { recipe, command, env: {} } : { recipe, missing });
    },
  };
}

/** The client of test/real/go, compiled. */
export function goStep(cache, root) {
  const folder = join(root, 'test', 'real', 'go');
  const part = 'go-client';
  const recipe = hashOf(['go.mod', 'go.sum', 'main.go'].map((file) => join(folder, file)));
  return {
    done: () => partIsCurrent(cache, part, recipe),
    run: async () => {
      console.log('setup: compiling test/real/go with go');
      mkdirSync(join(cache, part), { recursive: true });
      const command = join(cache, part, 'client');
      const { code, output } = await run('go', ['build', '-o', command, '.'], {
        cwd: folder,
        // The Go that is installed: another one would be downloaded.
        env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' },
        label: 'go build in test/real/go',
      });
      record(
        cache,
        part,
        code === 0 ? { recipe, command, env: {} } : { recipe, missing: whyNot(code, output) },
      );
    },
  };
}

function whyNot(code, output) {
  if (code === undefined) return 'go is not installed';
  return looksLikeNetworkTrouble(output)
    ? "go cannot reach the modules' proxy"
    : `go build failed: ${lastLine(output)}`;
}

function record(cache, name, part) {
  recordPart(cache, name, part);
  if (part.missing !== undefined)
    console.warn(`setup: the tests with ${name} will be skipped: ${part.missing}`);
}

function hashOf(files) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex');
}
