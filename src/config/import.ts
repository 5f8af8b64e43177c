import { dirname, resolve } from 'node:path';
import { synonymOf } from './keys.ts';
import { readText } from './load.ts';
import { describeProblem } from './problems.ts';
import { findServers, readDocument } from './read.ts';
import { isObject, type ServerEntry } from './schema.ts';
import { absolutePath, checkServer, isEnabled } from './server.ts';
import { referencesIn, variableForInput } from './variables.ts';

interface ImportedServers {
  /** As they stand in a file of ours. */
  mcpServers: Record<string, ServerEntry>;
  /** What was left out or changed, and what is still to do, in words for the user. */
  notes: string[];
}

/** Variables that only an editor can fill. */
const editorVariables = new Set(['workspaceFolder', 'workspaceFolderBasename', 'userHome', 'pathSeparator']);

/** Reads another program's file: Claude Desktop, Claude Code, Cursor, VS Code and their like. */
export async function importFile(path: string): Promise<ImportedServers> {
  return importText(readText(path), resolve(path));
}

/** One wrong server does not keep the others from being imported: it is left out, with a note. */
export function importText(text: string, file: string): ImportedServers {
  const { document, warnings } = readDocument(text, file);
  const descriptions = inputDescriptions(
    document.inputs ?? (isObject(document.mcp) ? document.mcp.inputs : undefined),
  );
  const notes = warnings.map(describeProblem);
  const mcpServers: Record<string, ServerEntry> = {};
  for (const [name, value] of Object.entries(findServers(document, file).entries)) {
    const original = isObject(value) ? renameKeys(value) : value;
    const { entry, problems } = checkServer(name, original, [name]);
    if (entry === undefined) {
      notes.push(...problems.map((problem) => `left out: ${describeProblem(problem)}`));
      continue;
    }
    const adapted = adapt(entry, dirname(file));
    mcpServers[name] = adapted;
    const changes = [
      ...(isObject(value) ? keyNotes(value, entry) : []),
      ...pathNotes(entry, adapted),
      ...variableNotes(adapted, descriptions),
    ];
    notes.push(...changes.map((note) => `${name}: ${note}`));
  }
  return { mcpServers, notes };
}

/** Keys that other programs use for ours: `serverUrl` becomes `url`. */
function renameKeys(server: Record<string, unknown>): Record<string, unknown> {
  const renamed = Object.entries(server).map(([key, value]) => {
    const ours = synonymOf(key);
    return [ours === undefined || ours in server ? key : ours, value];
  });
  return Object.fromEntries(renamed);
}

function adapt(entry: ServerEntry, folder: string): ServerEntry {
  const { type, disabled: _disabled, enabled: _enabled, ...rest } = entry;
  const adapted: ServerEntry = isEnabled(entry) ? rest : { ...rest, enabled: false };
  if (type !== undefined) adapted.type = type.startsWith('streamable') ? 'http' : type;
  // Relative to the other program's file, so they must not become relative to ours.
  if (entry.cwd !== undefined) adapted.cwd = absolutePath(entry.cwd, folder);
  if (entry.command?.includes('/')) adapted.command = absolutePath(entry.command, adapted.cwd ?? folder);
  return adapted;
}

function keyNotes(original: Record<string, unknown>, entry: ServerEntry): string[] {
  return Object.keys(original)
    .filter((key) => !(key in entry))
    .map((key) => {
      const ours = synonymOf(key);
      if (ours !== undefined && !(ours in original)) return `"${key}" is called "${ours}" here`;
      if (key === 'envFile') return '"envFile" was left out: put the variables of that file into "env"';
      return `"${key}" was left out: it has no effect here`;
    });
}

function pathNotes(entry: ServerEntry, adapted: ServerEntry): string[] {
  return (['cwd', 'command'] as const)
    .filter((key) => entry[key] !== adapted[key])
    .map((key) => `"${key}" was relative to the file and is absolute now: ${adapted[key]}`);
}

function variableNotes(entry: ServerEntry, descriptions: Map<string, string>): string[] {
  const references = Object.values(entry)
    .flatMap((value) => (typeof value === 'object' ? Object.values(value) : String(value)))
    .flatMap((text) => referencesIn(text));
  const notes = references.flatMap(({ name, isInput }) => {
    if (isInput) {
      const description = descriptions.has(name) ? ` (${descriptions.get(name)})` : '';
      return `set the variable ${variableForInput(name)}${description}: inputs cannot be asked for here`;
    }
    return editorVariables.has(name)
      ? `replace \${${name}} with a path: only an editor knows what it stands for`
      : [];
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
