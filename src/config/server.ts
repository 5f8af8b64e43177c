import { dirname, isAbsolute, resolve } from 'node:path';
import { unknownServerKeys } from './keys.ts';
import { type Path, type Problem, problemsOf } from './problems.ts';
import { type ServerEntry, serverSchema } from './schema.ts';
import type { ServerTransport } from './types.ts';

interface CheckedServer {
  /** Only there when there are no problems. */
  entry?: ServerEntry;
  problems: Problem[];
  warnings: Problem[];
}

/** Checks one server of a file by itself. */
export function checkServer(name: string, value: unknown, path: Path): CheckedServer {
  const named = nameProblems(name, path);
  const parsed = serverSchema.safeParse(value);
  const warnings = typeof value === 'object' && value !== null ? unknownKeyWarnings(value, path) : [];
  if (!parsed.success) return { problems: [...named, ...problemsOf(parsed.error, path)], warnings };
  const problems = [...named, ...contradictions(parsed.data, path)];
  return problems.length > 0 ? { problems, warnings } : { entry: parsed.data, problems, warnings };
}

/** How a checked server is reached; relative paths are relative to the folder of the file. */
export function transportOf(entry: ServerEntry, file: string): ServerTransport {
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

function nameProblems(name: string, path: Path): Problem[] {
  const because = 'names stand in tool names and in URIs; rename the server';
  if (name === '') return [{ path, message: `the server's name is empty: ${because}` }];
  if (name.length > 128)
    return [{ path, message: `the server's name is longer than 128 characters: ${because}` }];
  if (name.includes('/')) return [{ path, message: `the server's name has a slash in it: ${because}` }];
  if (/\p{Cc}/u.test(name))
    return [{ path, message: `the server's name has a control character in it: ${because}` }];
  if (!name.isWellFormed())
    return [{ path, message: `the server's name has half of a surrogate pair in it: ${because}` }];
  if (name === '__proto__') return [{ path, message: `a server cannot have this name: ${because}` }];
  return [];
}

function contradictions(entry: ServerEntry, path: Path): Problem[] {
  const { type, command, url, enabled, disabled } = entry;
  const problems: Problem[] = [];
  const report = (key: string, message: string) => problems.push({ path: [...path, key], message });
  if (command !== undefined && url !== undefined) {
    report(
      'url',
      'there is a "command" too: a server is either started or reached at a URL; remove one of them',
    );
  } else if (command === undefined && url === undefined) {
    const message = 'has neither "command" (to start it) nor "url" (to reach it): add one of them';
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
  return problems;
}

function unknownKeyWarnings(value: object, path: Path): Problem[] {
  return unknownServerKeys(value).map(({ key, meant }) => ({
    path: [...path, key],
    message: `is not a key that we know, so it has no effect${meant === undefined ? '' : `; did you mean "${meant}"?`}`,
  }));
}
