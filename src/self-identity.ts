import { readFileSync } from 'node:fs';

/** Identifies us to clients and servers. */
export function identity(): { name: string; version: string } {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  return { name: 'switchboard', version };
}
