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
  /** In the format of a configuration file. */
  mcpServers: Record<string, ServerEntry>;
  /** By server name. A configuration file has no field for them. */
  descriptions: Record<string, string>;
  /** Messages for the user: what was left out or changed, and what is left to do. */
  notes: string[];
}

export interface ImportOptions {
  /** Files resolve references from the environment, projects from their secrets. */
  target: 'file' | 'project';
  /** The base of relative paths. If undefined, servers with relative paths are left out. */
  folder: string | undefined;
  /** The address of this Switchboard. Servers that connect to it are left out. */
  ownUrl?: string | undefined;
  /** Selects a project if the file has servers of several. */
  projectFolder?: string | undefined;
}

/** Only an editor can resolve these. */
const editorVariables = new Set(['workspaceFolder', 'workspaceFolderBasename', 'userHome', 'pathSeparator']);

/** Reads the file of Claude Desktop, Claude Code, Cursor, VS Code or a similar program, or a registry's server.json. */
export async function importFile(
  path: string,
  options: Omit<ImportOptions, 'folder'> = { target: 'file' },
): Promise<ImportedServers> {
  const file = resolve(path);
  return importJsonOrToml(readTextOrPipe(path), file, { ...options, folder: dirname(file) });
}

/** `file` is its name in messages. */
export async function importJsonOrToml(
  text: string,
  file: string,
  options: ImportOptions,
): Promise<ImportedServers> {
  if (!isToml(text, file)) return importText(text, file, options);
  // Loaded on demand, because few files are TOML.
  const { readToml } = await import('./toml.ts');
  return importDocument({ document: readToml(text, file), warnings: [] }, file, options);
}

export function importText(
  text: string,
  file: string,
  options: ImportOptions = { target: 'file', folder: dirname(file) },
): ImportedServers {
  return importDocument(readDocument(text, file), file, options);
}

/** An invalid server is left out with a note; the others are still imported. */
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

/** Converts timeouts and tool choices from the keys of other programs. */
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

/** Renames keys of other programs: `serverUrl` becomes `url`. */
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
  // Paths are relative to the imported file, not to ours.
  if (entry.cwd !== undefined) adapted.cwd = absolutePath(entry.cwd, folder);
  if (entry.command?.includes('/')) adapted.command = absolutePath(entry.command, adapted.cwd ?? folder);
  return target === 'project' ? withoutInputs(adapted) : adapted;
}

/** Relative paths, which cannot be resolved without a base folder. */
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

/** Replaces an editor's `${input:…}` with references to secrets. */
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

/** Input ids may contain characters that secret names may not. */
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

/** The descriptions in VS Code's `inputs`. */
function inputDescriptions(inputs: unknown): Map<string, string> {
  const descriptions = new Map<string, string>();
  for (const input of Array.isArray(inputs) ? inputs : []) {
    if (isObject(input) && typeof input.id === 'string' && typeof input.description === 'string') {
      descriptions.set(input.id, input.description);
    }
  }
  return descriptions;
}
