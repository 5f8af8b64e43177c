import { SwitchboardError } from '../errors.ts';
import { isObject } from '../json.ts';
import type { ServerEntry } from './entry.ts';
import { mustBe } from './fields.ts';
import { ownerOf } from './foreign.ts';
import { ConfigSyntaxError, parseJson } from './json.ts';
import { invalidConfiguration, type Path, type Problem } from './problems.ts';
import { checkServer, serverOf, timeoutProblems } from './server.ts';
import { nameProblemsOf } from './server-names.ts';
import { readSettings, type ServerDefaults, type Settings } from './settings.ts';
import type { ServerConfig } from './types.ts';

/** In the order of: Claude Desktop, Claude Code and Cursor; VS Code; VS Code's user settings. */
const serverPlaces: Path[] = [['mcpServers'], ['servers'], ['mcp', 'servers']];

export interface Configuration {
  servers: ServerConfig[];
  settings: Settings;
  /** Also apply to servers in the database. */
  defaults: ServerDefaults;
}

interface ReadConfiguration {
  configuration: Configuration;
  /** Ignored parts that look intended. */
  warnings: Problem[];
}

/** `file` is the absolute path, used in messages and as the base of relative paths. */
export function readConfiguration(text: string, file: string): ReadConfiguration {
  try {
    return readOurs(text, file);
  } catch (error) {
    throw error instanceof SwitchboardError ? withOwner(error, text, file) : error;
  }
}

/** If another program's format caused the error, suggests an import. */
function withOwner(error: SwitchboardError, text: string, file: string): SwitchboardError {
  const owner = ownerOf(text, parsedOrNot(text), file);
  if (owner === undefined) return error;
  const advice = `This looks like the file of ${owner}: switchboard import ${file}`;
  return new SwitchboardError(error.code, `${error.message}\n${advice}`, { data: error.data });
}

function parsedOrNot(text: string): unknown {
  try {
    return parseJson(text).value;
  } catch {
    return undefined;
  }
}

function readOurs(text: string, file: string): ReadConfiguration {
  const { document, warnings } = readDocument(text, file);
  const { place, entries } = findServers(document, file);
  const { settings, defaults, timeoutMs, problems } = readSettings(document.switchboard);

  const right = new Map<string, ServerEntry>();
  for (const [name, value] of Object.entries(entries)) {
    const checked = checkServer(name, value, [...place, name]);
    problems.push(...checked.problems, ...timeoutProblems(value, timeoutMs, [...place, name]));
    warnings.push(...checked.warnings);
    if (checked.entry !== undefined) right.set(name, checked.entry);
  }
  for (const problem of nameProblemsOf(right, place)) problems.push(problem);
  if (problems.length > 0 || settings === undefined || defaults === undefined) {
    throw invalidConfiguration(file, problems);
  }
  const servers = [...right].map(([name, entry]) => serverOf(name, entry, defaults, file));
  return { configuration: { servers, settings, defaults }, warnings };
}

export function readDocument(
  text: string,
  file: string,
): { document: Record<string, unknown>; warnings: Problem[] } {
  const { value, repeated } = parseOrExplain(text, file);
  if (!isObject(value)) {
    const message = mustBe('an object such as {"mcpServers": {…}}', value);
    throw invalidConfiguration(file, [{ path: [], message }]);
  }
  const warnings = repeated.map(({ path, position }) => ({
    path,
    message: `is there twice (again in line ${position.line}); the last one counts, so rename or remove one`,
  }));
  return { document: value, warnings };
}

export function findServers(
  document: Record<string, unknown>,
  file: string,
): { place: Path; entries: Record<string, unknown> } {
  const found = serverPlaces
    .map((place) => ({ place, entries: valueAt(document, place) }))
    .filter(({ entries }) => entries !== undefined);
  const [first, second] = found;
  if (first === undefined) {
    const message = 'has no servers: add {"mcpServers": {"name": {"command": …} or {"url": …}}}';
    throw invalidConfiguration(file, [{ path: [], message }]);
  }
  if (second !== undefined) {
    const message = `"${first.place.join('.')}" is there too: put all servers into one of them`;
    throw invalidConfiguration(file, [{ path: second.place, message }]);
  }
  if (!isObject(first.entries)) {
    const message = mustBe('an object of names and servers', first.entries);
    throw invalidConfiguration(file, [{ path: first.place, message }]);
  }
  return { place: first.place, entries: first.entries };
}

function parseOrExplain(text: string, file: string) {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof ConfigSyntaxError)) throw error;
    const { line, column } = error.position;
    throw invalidConfiguration(`${file}:${line}:${column}`, [
      { path: [], message: `not valid JSON: ${error.message}` },
    ]);
  }
}

function valueAt(document: Record<string, unknown>, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (isObject(value) ? value[String(key)] : undefined), document);
}
