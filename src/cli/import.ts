import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { importFile, loadConfiguration } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { complain, print, printJson } from './output.ts';

export interface ImportFlags {
  config: string;
  force?: boolean;
  json?: boolean;
}

/** Adds the servers of another program's file to ours. */
export async function importServers(path: string, flags: ImportFlags): Promise<void> {
  const { mcpServers, notes } = await importFile(path);
  const target = resolve(flags.config);
  const present = await readPresent(target);
  // A file that names its servers as VS Code does goes on doing so: a file cannot do both.
  const key = present.servers === undefined ? 'mcpServers' : 'servers';
  const known = (present[key] ?? {}) as Record<string, unknown>;
  const clashes = Object.keys(mcpServers).filter((name) => Object.hasOwn(known, name));
  if (clashes.length > 0 && !flags.force) {
    throw new SwitchboardError(
      'invalid_config',
      `${target} has servers of these names already: ${clashes.join(', ')}. Nothing was written; --force replaces them.`,
    );
  }
  const merged = { ...present, [key]: { ...known, ...mcpServers } };
  await mkdir(dirname(target), { recursive: true });
  await writeFile(`${target}.new`, `${JSON.stringify(merged, null, 2)}\n`, { mode: 0o600 });
  await rename(`${target}.new`, target);
  const names = Object.keys(mcpServers);
  if (flags.json) {
    printJson({ config: target, imported: names, notes });
    return;
  }
  for (const note of notes) complain(`note: ${note}`);
  print(`${names.length} servers written to ${target}: ${names.join(', ')}`);
}

async function readPresent(path: string): Promise<Record<string, unknown>> {
  if (!existsSync(path)) return {};
  // A file that is wrong already is not made worse.
  await loadConfiguration(path);
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
  } catch {
    throw new SwitchboardError(
      'invalid_config',
      `${path} has comments or trailing commas, which would be lost. Nothing was written; import into another file with --config.`,
    );
  }
}
