import { existsSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  credentialsIn,
  type ImportedServers,
  importFile,
  importJsonOrToml,
  loadConfiguration,
  unsetVariables,
} from '../../config.ts';
import { SwitchboardError } from '../../errors.ts';
import { replacePrivateFile } from '../../private-files.ts';
import { callApi, projectPath } from '../api.ts';
import { DEFAULT_CONFIG, DEFAULT_PROJECT } from '../defaults.ts';
import { usageError } from '../exit.ts';
import { inputName, readInput } from '../input.ts';
import { complain, counted, print, printJson } from '../output.ts';

/** A local Switchboard responds immediately. */
const STATUS_TIMEOUT_MS = 2_000;

export interface ImportFlags {
  url: string;
  /** Whether --url was given. */
  isAddressed?: boolean;
  config?: string;
  project?: string;
  folder?: string;
  force?: boolean;
  json?: boolean;
}

/** Adds the servers of another program's file to a configuration file or a project. */
export async function importServers(path: string, flags: ImportFlags): Promise<void> {
  const { config, project = flags.isAddressed ? DEFAULT_PROJECT : undefined } = flags;
  if (config !== undefined && project !== undefined) {
    throw usageError(
      'Choose a file (--config) or a project of a running Switchboard (--project, --url), not both.',
    );
  }
  const target = project === undefined ? 'file' : 'project';
  const options = { target, projectFolder: resolve(flags.folder ?? '.'), ownUrl: flags.url } as const;
  const imported =
    path === '-'
      ? await importJsonOrToml(await readInput('-'), inputName('-'), { ...options, folder: process.cwd() })
      : await importFile(path, options);
  if (project === undefined) await intoFile(imported, resolve(config ?? DEFAULT_CONFIG), flags);
  else await intoProject(imported, project, flags);
}

async function intoFile(imported: ImportedServers, target: string, flags: ImportFlags): Promise<void> {
  const { mcpServers } = imported;
  const present = await readPresent(target);
  // A file must not have both keys, so VS Code's stays.
  const key = present.servers === undefined ? 'mcpServers' : 'servers';
  const known = (present[key] ?? {}) as Record<string, unknown>;
  const [unchanged, different] = partition(Object.keys(mcpServers), (name) =>
    isDeepStrictEqual(known[name], mcpServers[name]),
  );
  const [replaced, added] = partition(different, (name) => Object.hasOwn(known, name));
  if (replaced.length > 0 && !flags.force) {
    throw new SwitchboardError(
      'conflict',
      `${target} already has other servers with these names: ${replaced.join(', ')}. Nothing was written; --force replaces them.`,
    );
  }
  if (different.length > 0) {
    const written = Object.fromEntries(different.map((name) => [name, mcpServers[name]]));
    // Writes the target of a link, not the link itself.
    replacePrivateFile(
      existsSync(target) ? realpathSync(target) : target,
      `${JSON.stringify({ ...present, [key]: { ...known, ...written } }, null, 2)}\n`,
    );
  }
  const notes = [...imported.notes, ...fileNotes(imported, different, target)];
  if (flags.config === undefined) notes.push(...(await otherFileNotes(target, flags.url)));
  if (flags.json) {
    printJson({ config: target, imported: different, replaced, unchanged, notes });
    return;
  }
  for (const note of notes) complain(`note: ${note}`);
  const summary = (names: string[], what: string) =>
    names.length === 0 ? [] : [`${counted(names.length, 'server')} ${what} ${target}: ${names.join(', ')}`];
  const lines = [
    ...summary(added, 'written to'),
    ...summary(replaced, 'replaced in'),
    ...summary(unchanged, 'already in'),
  ];
  print(lines.length === 0 ? `no servers written to ${target}` : lines.join('\n'));
}

function partition<Item>(items: Item[], fits: (item: Item) => boolean): [fitting: Item[], others: Item[]] {
  return [items.filter(fits), items.filter((item) => !fits(item))];
}

function fileNotes({ mcpServers, notes }: ImportedServers, names: string[], target: string): string[] {
  const unset = names.flatMap((name) =>
    unsetVariables(mcpServers[name]!, (variable) => process.env[variable])
      // Skips variables that another note already mentions.
      .filter((variable) => !notes.some((note) => saysToSet(note, variable)))
      .map(
        (variable) =>
          `${name}: set the variable ${variable} where Switchboard runs, or the secret: switchboard secret set ${variable}`,
      ),
  );
  const open = names.filter((name) => credentialsIn(mcpServers[name]!).length > 0);
  if (open.length === 0) return unset;
  return [
    ...unset,
    `credentials of ${open.join(', ')} are in ${target} in plain text; import -P ${DEFAULT_PROJECT} encrypts them`,
  ];
}

function saysToSet(note: string, variable: string): boolean {
  return note.includes(`the variable ${variable}`) || note.includes(`replace \${${variable}}`);
}

async function otherFileNotes(target: string, url: string): Promise<string[]> {
  const status = await callApi<{ config?: unknown }>(url, 'GET', '/status', {
    timeoutMs: STATUS_TIMEOUT_MS,
  }).catch(() => undefined);
  const read = status?.config;
  if (typeof read !== 'string' || realPath(read) === realPath(target)) return [];
  return [
    `the Switchboard at ${url} reads ${read}, and not this file: import with -c ${read}, or with -P ${DEFAULT_PROJECT}`,
  ];
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

async function intoProject(imported: ImportedServers, project: string, flags: ImportFlags): Promise<void> {
  const { mcpServers, descriptions, notes } = imported;
  if (Object.keys(mcpServers).length === 0) {
    throw usageError(['No servers to import.', ...notes].join('\n       '));
  }
  const described = Object.entries(mcpServers).map(([name, entry]) => [
    name,
    Object.hasOwn(descriptions, name) ? { ...entry, description: descriptions[name] } : entry,
  ]);
  const done = await callApi<{ imported: string[]; notes: string[] }>(
    flags.url,
    'POST',
    projectPath(project, 'import'),
    {
      body: { mcpServers: Object.fromEntries(described) },
      query: { replace: String(flags.force === true) },
    },
  ).catch(withAdvice);
  // The file's note about a secret says more than that it is not set.
  const isNews = (note: string) => !notes.some((known) => known.startsWith(note));
  const allNotes = [...notes, ...done.notes.filter(isNews)];
  if (flags.json) {
    printJson({ project, imported: done.imported, notes: allNotes });
    return;
  }
  for (const note of allNotes) complain(`note: ${note}`);
  const how = flags.force ? 'added to or replaced in' : 'added to';
  print(
    done.imported.length === 0
      ? `no servers added to project ${project}`
      : `${counted(done.imported.length, 'server')} ${how} project ${project}: ${done.imported.join(', ')}`,
  );
}

function withAdvice(error: unknown): never {
  if (!(error instanceof SwitchboardError) || error.code !== 'conflict') throw error;
  throw new SwitchboardError('conflict', `${error.message} Nothing was written; --force replaces them.`, {
    data: error.data,
  });
}

async function readPresent(path: string): Promise<Record<string, unknown>> {
  if (!existsSync(path)) return {};
  // Fails if the existing file is invalid.
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
