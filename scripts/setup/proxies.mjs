import { join } from 'node:path';
import { lastLine, unpackDebian } from './apt.mjs';
import { partIsCurrent, recordPart } from './record.mjs';
import { run } from './run.mjs';

// The program of each package, and words that make it print its version.
const programs = {
  nginx: ['usr/sbin/nginx', '-v'],
  caddy: ['usr/bin/caddy', 'version'],
};

/** Gets Debian's nginx or Caddy, for the tests behind TLS proxies. They are not installed, so that no service of theirs starts. */
export function proxyStep(cache, name) {
  const part = { name, recipe: `Debian's ${name}, unpacked` };
  const folder = join(cache, name);
  const [path, version] = programs[name];
  const command = join(folder, path);
  return {
    done: () => partIsCurrent(cache, part),
    run: async () => {
      const missing = (await unpackDebian(name, folder)) ?? (await whyUnusable(command, version));
      recordPart(cache, part, missing, command);
    },
  };
}

/** The packages that it depends on may be missing. */
async function whyUnusable(command, version) {
  const { code, output } = await run(command, [version]);
  if (code === 0) return undefined;
  return code === undefined
    ? `the package has no ${command}`
    : `${command} does not run: ${lastLine(output)}`;
}
