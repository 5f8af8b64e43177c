import { dirname, isAbsolute, resolve } from 'node:path';
import { isSetting, unknownServerKeys } from './keys.ts';
import { invalidConfiguration, limitProblems, type Path, type Problem, problemsOf } from './problems.ts';
import { type ServerEntry, serverSchema } from './schema.ts';
import type { ServerConfig, ServerDefaults, ServerTransport } from './types.ts';

interface CheckedServer {
  /** Only there when there are no problems. */
  entry?: ServerEntry;
  problems: Problem[];
  warnings: Problem[];
}

/** Checks one server of a file by itself. */
export function checkServer(name: string, value: unknown, path: Path): CheckedServer {
  const named = nameProblems('server', name, path);
  const parsed = serverSchema.safeParse(value);
  const warnings = typeof value === 'object' && value !== null ? unknownKeyWarnings(value, path) : [];
  if (!parsed.success) return { problems: [...named, ...problemsOf(parsed.error, path)], warnings };
  const problems = [...named, ...contradictions(parsed.data, path, meantKey(value))];
  return problems.length > 0 ? { problems, warnings } : { entry: parsed.data, problems, warnings };
}

/** A call may not take longer than its maximum, where the file says both. */
export function timeoutProblems(value: unknown, usualTimeoutMs: number | undefined, path: Path): Problem[] {
  return limitProblems(path, value, ['timeoutMs', usualTimeoutMs], 'maxTimeoutMs');
}

/** A server that is not in a file; `place` stands for the file that paths are relative to. */
export function checkStored(
  name: string,
  value: unknown,
  defaults: ServerDefaults,
  place: string,
): ServerConfig {
  const { entry, problems } = checkServer(name, value, []);
  if (entry === undefined) throw invalidConfiguration(`the server "${name}"`, problems);
  return serverOf(name, entry, defaults, place);
}

/** A checked server, with what it does not say filled in. */
export function serverOf(
  name: string,
  entry: ServerEntry,
  defaults: ServerDefaults,
  file: string,
): ServerConfig {
  // What holds for others gives way to the maximum of a server.
  const { prefix, group, timeoutMs = Math.min(defaults.timeoutMs, entry.maxTimeoutMs ?? Infinity) } = entry;
  return {
    name,
    transport: transportOf(entry, file),
    enabled: isEnabled(entry),
    ...(prefix === undefined ? {} : { prefix }),
    startup: entry.startup ?? defaults.startup,
    isolation: entry.isolation ?? 'shared',
    era: entry.era ?? 'auto',
    ...(group === undefined ? {} : { group }),
    replicas: entry.replicas ?? 1,
    labels: entry.labels ?? {},
    concurrency: entry.concurrency ?? defaults.concurrency,
    timeoutMs,
    maxTimeoutMs: entry.maxTimeoutMs ?? Math.max(timeoutMs, defaults.maxTimeoutMs),
    idleStopMs: entry.idleStopMs ?? defaults.idleStopMs,
    ...(entry.tools === undefined ? {} : { tools: entry.tools }),
  };
}

/** How a checked server is reached; relative paths are relative to the folder of the file. */
function transportOf(entry: ServerEntry, file: string): ServerTransport {
  if (entry.url !== undefined) {
    const type = entry.type === 'sse' ? 'sse' : 'http';
    return { type, url: entry.url, headers: entry.headers ?? {} };
  }
  const cwd = absolutePath(entry.cwd ?? '.', dirname(file));
  const command = entry.command ?? '';
  return {
    type: 'stdio',
    command: command.includes('/') ? absolutePath(command, cwd) : command,
    args: entry.args ?? [],
    env: entry.env ?? {},
    cwd,
  };
}

export function isEnabled(entry: ServerEntry): boolean {
  return entry.enabled ?? !(entry.disabled ?? false);
}

/** A path that starts with a variable is absolute, or it is refused once the variable is known. */
export function absolutePath(path: string, base: string): string {
  return path.startsWith('${') || isAbsolute(path) ? path : resolve(base, path);
}

function nameProblems(what: 'server' | 'group', name: string, path: Path): Problem[] {
  const problem = nameProblem(name);
  if (problem === undefined) return [];
  const message = `the ${what}'s name ${problem}: names stand in tool names and in URIs; rename the ${what}`;
  return [{ path, message }];
}

function nameProblem(name: string): string | undefined {
  if (name === '') return 'is empty';
  if (name.length > 128) return 'is longer than 128 characters';
  if (name.includes('/')) return 'has a slash in it';
  if (/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(name)) return 'has a control character in it';
  if (!name.isWellFormed()) return 'has half of a surrogate pair in it';
  return name === '__proto__' ? 'cannot be this one' : undefined;
}

/** What stands there in place of "command" or "url", where it is only misspelt. */
function meantKey(value: unknown): string | undefined {
  const unknown = typeof value === 'object' && value !== null ? unknownServerKeys(value) : [];
  const found = unknown.find(({ meant }) => meant === 'command' || meant === 'url');
  return found && `"${found.key}" is not known: did you mean "${found.meant}"?`;
}

function contradictions(entry: ServerEntry, path: Path, misspelt: string | undefined): Problem[] {
  const { type, command, url, enabled, disabled, group, replicas = 1, isolation } = entry;
  const problems: Problem[] = [];
  const report = (key: string, message: string) => problems.push({ path: [...path, key], message });
  if (command !== undefined && url !== undefined) {
    report(
      'url',
      'there is a "command" too: a server is either started or reached at a URL; remove one of them',
    );
  } else if (command === undefined && url === undefined) {
    const advice = misspelt ?? 'add one of them';
    const message = `has neither "command" (to start it) nor "url" (to reach it): ${advice}`;
    problems.push({ path, message });
  } else if (type === 'stdio' && command === undefined) {
    report('type', '"stdio" needs a "command", but there is a "url": remove "type" or change it to "http"');
  } else if (type !== undefined && type !== 'stdio' && url === undefined) {
    report(
      'type',
      `"${type}" needs a "url", but there is a "command": remove "type" or change it to "stdio"`,
    );
  }
  if (enabled !== undefined && disabled !== undefined && enabled === disabled) {
    report('disabled', 'contradicts "enabled": remove one of them');
  }
  if (group !== undefined) problems.push(...nameProblems('group', group, [...path, 'group']));
  if (replicas > 1 && command === undefined && url !== undefined) {
    report(
      'replicas',
      'needs a "command": list each address as a server of its own, and give them all the same "group"',
    );
  } else if (replicas > 1 && isolation === 'session') {
    report('replicas', 'contradicts "isolation": "session", where every client has its own process anyway');
  }
  return problems;
}

function unknownKeyWarnings(value: object, path: Path): Problem[] {
  return unknownServerKeys(value).map(({ key, meant }) => ({
    path: [...path, key],
    message: isSetting(key)
      ? 'is a setting for all servers, so it has no effect here: put it into the top-level object "switchboard"'
      : `is not a key that we know, so it has no effect${meant === undefined ? '' : `; did you mean "${meant}"?`}`,
  }));
}
