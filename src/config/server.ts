import { dirname, isAbsolute, resolve } from 'node:path';
import { isObject } from '../json.ts';
import type { ServerEntry } from './entry.ts';
import { nameProblem } from './fields.ts';
import { isForeignKey, type UnknownKey, unknownKeys } from './keys.ts';
import { invalidConfiguration, limitProblems, type Path, type Problem, problemsOf } from './problems.ts';
import { serverSchema } from './server-fields.ts';
import { replicaProblems } from './server-rules.ts';
import { isSetting, type ServerDefaults } from './settings.ts';
import type { ServerConfig, ServerTransport } from './types.ts';

const serverKeys = Object.keys(serverSchema.shape);

interface CheckedServer {
  entry?: ServerEntry;
  problems: Problem[];
  warnings: Problem[];
}

export function checkServer(name: string, value: unknown, path: Path): CheckedServer {
  const named = nameProblems('server', name, path);
  const parsed = serverSchema.safeParse(value);
  const unknown = isObject(value)
    ? unknownKeys(
        Object.keys(value).filter((key) => !isForeignKey(key)),
        serverKeys,
      )
    : [];
  const warnings = unknown.map((each) => unknownKeyWarning(each, path));
  if (!parsed.success) return { problems: [...named, ...problemsOf(parsed.error, path)], warnings };
  // A misspelt "command" or "url" is reported as such, not as missing.
  const misspelt = unknown.find(({ meant }) => meant === 'command' || meant === 'url');
  const problems = [...named, ...contradictions(parsed.data, path, misspelt)];
  return problems.length > 0 ? { problems, warnings } : { entry: parsed.data, problems, warnings };
}

/** `timeoutMs` is the default that the file sets for all servers. */
export function timeoutProblems(value: unknown, timeoutMs: number | undefined, path: Path): Problem[] {
  return limitProblems(path, value, ['timeoutMs', timeoutMs], 'maxTimeoutMs');
}

/** For a server outside of files. Relative paths are relative to the folder of `file`. */
export function checkStored(
  name: string,
  value: unknown,
  defaults: ServerDefaults,
  file: string,
): ServerConfig {
  const { entry, problems } = checkServer(name, value, []);
  if (entry === undefined) throw invalidConfiguration(`the server "${name}"`, problems);
  return serverOf(name, entry, defaults, file);
}

export function serverOf(
  name: string,
  entry: ServerEntry,
  defaults: ServerDefaults,
  file: string,
): ServerConfig {
  // The default must not exceed the server's own maximum.
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

/** Relative paths are relative to the folder of `file`. */
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

/** A path that starts with a variable is checked once the variable is resolved. */
export function absolutePath(path: string, base: string): string {
  return path.startsWith('${') || isAbsolute(path) ? path : resolve(base, path);
}

function nameProblems(what: 'server' | 'group', name: string, path: Path): Problem[] {
  const problem = nameProblem(name);
  if (problem === undefined) return [];
  const message = `the ${what}'s name ${problem}, because it is part of tool names and URIs: rename the ${what}`;
  return [{ path, message }];
}

function contradictions(entry: ServerEntry, path: Path, misspelt: UnknownKey | undefined): Problem[] {
  const { type, command, url, enabled, disabled, group, replicas, isolation } = entry;
  const problems: Problem[] = [];
  const report = (key: string, message: string) => problems.push({ path: [...path, key], message });
  if (command !== undefined && url !== undefined) {
    report(
      'url',
      'there is a "command" too: a server is either started or reached at a URL; remove one of them',
    );
  } else if (command === undefined && url === undefined) {
    const advice =
      misspelt === undefined
        ? 'add one of them'
        : `"${misspelt.key}" is not known: did you mean "${misspelt.meant}"?`;
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
  return [
    ...problems,
    ...replicaProblems(url === undefined || command !== undefined, replicas, isolation, path),
  ];
}

function unknownKeyWarning({ key, meant }: UnknownKey, path: Path): Problem {
  const advice = meant === undefined ? '' : `; did you mean "${meant}"?`;
  const message = isSetting(key)
    ? 'is a setting for all servers, so it has no effect here: move it to the top-level object "switchboard"'
    : `is not a known key, so it has no effect${advice}`;
  return { path: [...path, key], message };
}
