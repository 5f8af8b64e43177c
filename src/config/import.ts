import { dirname, isAbsolute, resolve } from 'node:path';
import { isObject } from '../json.ts';
import type { ServerEntry } from './entry.ts';

import { foreignServers, isToml, type Program, timeoutOf, toolChoiceOf, toolKeys } from './foreign.ts';
import { synonymOf } from './keys.ts';
import { readTextOrPipe } from './load.ts';
import { describeProblem, invalidConfiguration } from './problems.ts';
import { findServers, readDocument } from './read.ts';
import { findRegistryServer, readRegistryServer } from './registry.ts';
import { isSelf } from './self.ts';
import { absolutePath, checkServer, isEnabled } from './server.ts';
import { referencesIn, replaceReferences, variableForInput } from './variables.ts';

export interface ImportedServers {
  /** As they stand in a file of ours. */
  mcpServers: Record<string, ServerEntry>;
  /** What their source says of them, by name; a file of ours has no place for it. */
  descriptions: Record<string, string>;
  /** What was left out or changed, and what is still to do, in words for the user. */
  notes: string[];
}

export interface ImportOptions {
  /** Where the servers go: references are filled from the environment in a file, and from secrets in a project. */
  target: 'file' | 'project';
  /** What relative paths are relative to. Where nobody knows, a server that has one is left out. */
  folder: string | undefined;
  /** Where Switchboard itself is: a server at this address, or a bridge to it, is left out. */
  ownUrl?: string | undefined;
  /** Whose servers are taken of a file that has those of several projects, each in its folder. */
  projectFolder?: string | undefined;
}

/** Variables that only an editor can fill. */
const editorVariables = new Set(['workspaceFolder', 'workspaceFolderBasename', 'userHome', 'pathSeparator']);

/** Reads another program's file: Claude Desktop, Claude Code, Cursor, VS Code and their like, or a registry's. */
export async function importFile(
  path: string,
  options: Omit<ImportOptions, 'folder'> = { target: 'file' },
): Promise<ImportedServers> {
  const file = resolve(path);
  return importJsonOrToml(readTextOrPipe(path), file, { ...options, folder: dirname(file) });
}

/** The same for a text from elsewhere. `file` is what messages call it. */
export async function importJsonOrToml(
  text: string,
  file: string,
  options: ImportOptions,
): Promise<ImportedServers> {
  if (!isToml(text, file)) return importText(text, file, options);
  // Few files are TOML, and all commands would load its parser.
  const { readToml } = await import('./toml.ts');
  return importDocument({ document: readToml(text, file), warnings: [] }, file, options);
}

/** The same for JSON alone. */
export function importText(
  text: string,
  file: string,
  options: ImportOptions = { target: 'file', folder: dirname(file) },
): ImportedServers {
  return importDocument(readDocument(text, file), file, options);
}

/** One wrong server does not keep the others from being imported: it is left out, with a note. */
function importDocument(
  { document, warnings }: ReturnType<typeof readDocument>,
  file: string,
  options: ImportOptions,
): ImportedServers {
  const imported: ImportedServers = {
    mcpServers: {},
    descriptions: {},
    notes: warnings.map(describeProblem),
  };
  const registryServer = findRegistryServer(document);
  if (registryServer === undefined) importServers(document, file, options, imported);
  else importRegistryServer(registryServer, file, options, imported);
  return imported;
}

function importServers(
  document: Record<string, unknown>,
  file: string,
  options: ImportOptions,
  { mcpServers, descriptions, notes }: ImportedServers,
): void {
  const inputs = inputDescriptions(
    document.inputs ?? (isObject(document.mcp) ? document.mcp.inputs : undefined),
  );
  const foreign = foreignServers(document, file, options.projectFolder ?? '');
  notes.push(...(foreign?.notes ?? []));
  const servers = foreign?.entries ?? findServers(document, file).entries;
  for (const [name, value] of Object.entries(servers)) {
    const original = isObject(value) ? renameKeys(withForeignSettings(value, foreign?.program)) : value;
    const { entry, problems } = checkServer(name, original, [name]);
    const wrong = [
      ...problems.map(describeProblem),
      ...(entry === undefined || options.folder !== undefined ? [] : lostPaths(name, entry)),
    ];
    if (entry === undefined || wrong.length > 0) {
      for (const problem of wrong) notes.push(`left out: ${problem}`);
      continue;
    }
    if (options.ownUrl !== undefined && isSelf(entry, options.ownUrl)) {
      notes.push(`left out: ${name}: it is Switchboard itself`);
      continue;
    }
    const adapted = adapt(entry, options);
    mcpServers[name] = adapted;
    const description = isObject(value) ? value.description : undefined;
    if (typeof description === 'string' && description !== '') descriptions[name] = description;
    const changes = [
      ...(isObject(value) ? keyNotes(value, entry, options) : []),
      ...pathNotes(entry, adapted),
      ...variableNotes(entry, inputs, options),
    ];
    for (const note of changes) notes.push(`${name}: ${note}`);
  }
}

function importRegistryServer(
  document: object,
  file: string,
  { target }: ImportOptions,
  { mcpServers, descriptions, notes }: ImportedServers,
): void {
  const word = target === 'project' ? 'secret' : 'variable';
  const { name, description, entry, notes: needs } = readRegistryServer(document, file, word);
  const { entry: checked, problems } = checkServer(name, entry, [name]);
  if (checked === undefined) throw invalidConfiguration(file, problems);
  mcpServers[name] = checked;
  if (description !== undefined && description !== '') descriptions[name] = description;
  for (const note of needs) notes.push(`${name}: ${note}`);
}

/** With what other programs say of timeouts and tools in keys of their own, as ours. */
function withForeignSettings(
  server: Record<string, unknown>,
  program: Program | undefined,
): Record<string, unknown> {
  const timeoutMs = timeoutOf(server.timeout, program);
  const tools = toolChoiceOf(server);
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(tools === undefined ? {} : { tools }),
    ...server,
  };
}

/** Keys that other programs use for ours: `serverUrl` becomes `url`. */
function renameKeys(server: Record<string, unknown>): Record<string, unknown> {
  const renamed = Object.entries(server).map(([key, value]) => {
    const ours = synonymOf(key);
    return [ours === undefined || ours in server ? key : ours, value];
  });
  return Object.fromEntries(renamed);
}

function adapt(entry: ServerEntry, { target, folder = '/' }: ImportOptions): ServerEntry {
  const { type, disabled: _disabled, enabled: _enabled, ...rest } = entry;
  const adapted: ServerEntry = isEnabled(entry) ? rest : { ...rest, enabled: false };
  if (type !== undefined) adapted.type = type.startsWith('streamable') ? 'http' : type;
  // Relative to the other program's file, so they must not become relative to ours.
  if (entry.cwd !== undefined) adapted.cwd = absolutePath(entry.cwd, folder);
  if (entry.command?.includes('/')) adapted.command = absolutePath(entry.command, adapted.cwd ?? folder);
  return target === 'project' ? withoutInputs(adapted) : adapted;
}

/** Paths that mean nothing where nobody knows the folder that they are relative to. */
function lostPaths(name: string, { cwd, command }: ServerEntry): string[] {
  const isLost = (path: string) => !path.startsWith('${') && !isAbsolute(path);
  const lost = [
    ...(cwd !== undefined && isLost(cwd) ? [['cwd', cwd]] : []),
    ...(command?.includes('/') && isLost(command) && cwd === undefined ? [['command', command]] : []),
  ];
  return lost.map(
    ([key, path]) =>
      `${name}.${key}: "${path}" is relative, and the folder it belongs to is not known here: make it absolute`,
  );
}

/** The inputs of an editor as references to secrets. */
function withoutInputs(entry: ServerEntry): ServerEntry {
  const each = (values: Record<string, string>) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, inputsAsSecrets(value)]));
  const { command, args, env, cwd, url, headers } = entry;
  return {
    ...entry,
    ...(command === undefined ? {} : { command: inputsAsSecrets(command) }),
    ...(args === undefined ? {} : { args: args.map(inputsAsSecrets) }),
    ...(env === undefined ? {} : { env: each(env) }),
    ...(cwd === undefined ? {} : { cwd: inputsAsSecrets(cwd) }),
    ...(url === undefined ? {} : { url: inputsAsSecrets(url) }),
    ...(headers === undefined ? {} : { headers: each(headers) }),
  };
}

function inputsAsSecrets(text: string): string {
  return replaceReferences(
    text,
    /\$\{input:([^}:]+)(:-[^}]*)?\}/g,
    (_whole, id: string, fallback = '') => `\${${secretForInput(id)}${fallback}}`,
  );
}

/** A secret cannot have every name that an input can. */
function secretForInput(id: string): string {
  return variableForInput(id).replace(/^(?=\d)/, '_');
}

function keyNotes(
  original: Record<string, unknown>,
  entry: ServerEntry,
  { target }: ImportOptions,
): string[] {
  return Object.keys(original)
    .filter((key) => !(key in entry) && !(key === 'description' && target === 'project'))
    .map((key) => {
      const ours = synonymOf(key);
      if (ours !== undefined && !(ours in original)) return `"${key}" is called "${ours}" here`;
      if (key === 'timeout' && entry.timeoutMs !== undefined) {
        return `"timeout" is "timeoutMs": ${entry.timeoutMs} here`;
      }
      if (toolKeys.has(key) && entry.tools !== undefined) {
        return `"${key}" is "tools": ${JSON.stringify(entry.tools)} here`;
      }
      if (key === 'startup_timeout_sec' || key === 'startup_timeout_ms') {
        return `"${key}" was left out: here "connectTimeoutMs" in the object "switchboard" of the configuration file holds for all servers`;
      }
      if (key === 'envFile') return '"envFile" was left out: put the variables of that file into "env"';
      return `"${key}" was left out: it has no effect here`;
    });
}

function pathNotes(entry: ServerEntry, adapted: ServerEntry): string[] {
  return (['cwd', 'command'] as const)
    .filter((key) => entry[key] !== adapted[key])
    .map((key) => `"${key}" was relative to the file and is absolute now: ${adapted[key]}`);
}

function variableNotes(
  entry: ServerEntry,
  descriptions: Map<string, string>,
  { target }: ImportOptions,
): string[] {
  const { command = '', args = [], env = {}, cwd = '', url = '', headers = {} } = entry;
  const texts = [command, ...args, ...Object.values(env), cwd, url, ...Object.values(headers)];
  const references = texts.flatMap(referencesIn);
  const notes = references.flatMap(({ name, isInput }) => {
    if (isInput) {
      const description = descriptions.has(name) ? ` (${descriptions.get(name)})` : '';
      const wanted =
        target === 'project' ? `secret ${secretForInput(name)}` : `variable ${variableForInput(name)}`;
      return `set the ${wanted}${description}: Switchboard does not prompt for inputs`;
    }
    return editorVariables.has(name) ? `replace \${${name}} with a path: only an editor can resolve it` : [];
  });
  return [...new Set(notes)];
}

/** VS Code's list of what it asks the user for. */
function inputDescriptions(inputs: unknown): Map<string, string> {
  const descriptions = new Map<string, string>();
  for (const input of Array.isArray(inputs) ? inputs : []) {
    if (isObject(input) && typeof input.id === 'string' && typeof input.description === 'string') {
      descriptions.set(input.id, input.description);
    }
  }
  return descriptions;
}
