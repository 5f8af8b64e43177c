import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastLine } from './apt.mjs';
import { uvVenvStep } from './python.mjs';
import { partIsCurrent, recordPart } from './record.mjs';
import { looksLikeNetworkTrouble, run } from './run.mjs';

// The servers and clients of test/real that npm does not install.

/** An environment with the packages of test/real/python/<name>.txt; the part's command is its Python. */
export function pythonStep(cache, root, name) {
  const requirements = join(root, 'test', 'real', 'python', `${name}.txt`);
  const part = { name: `python-${name}`, recipe: hashOf([requirements]) };
  return uvVenvStep(cache, part, ['--requirement', requirements], 'python');
}

/** The client of test/real/go, compiled. */
export function goStep(cache, root) {
  const folder = join(root, 'test', 'real', 'go');
  const files = ['go.mod', 'go.sum', 'main.go'].map((file) => join(folder, file));
  const part = { name: 'go-client', recipe: hashOf(files) };
  return {
    done: () => partIsCurrent(cache, part),
    run: async () => {
      console.log('setup: compiling test/real/go with go');
      mkdirSync(join(cache, part.name), { recursive: true });
      const command = join(cache, part.name, 'client');
      const { code, output } = await run('go', ['build', '-o', command, '.'], {
        cwd: folder,
        // Use the installed Go; otherwise go may download another one.
        env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' },
        label: 'go build in test/real/go',
      });
      recordPart(cache, part, code === 0 ? undefined : explain(code, output), command);
    },
  };
}

function explain(code, output) {
  if (code === undefined) return 'go is not installed';
  return looksLikeNetworkTrouble(output)
    ? "go cannot reach the modules' proxy"
    : `go build failed: ${lastLine(output)}`;
}

function hashOf(files) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex');
}
