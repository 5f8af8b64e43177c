import { readFileSync } from 'node:fs';

/** Who we are, to clients and to servers alike. */
export function identity(): { name: string; version: string } {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  return { name: 'switchboard', version };
}
