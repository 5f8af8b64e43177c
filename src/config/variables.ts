import { isAbsolute } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import type { ServerEntry } from './entry.ts';
import type { ServerTransport } from './types.ts';

/** `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`. Any other text in braces is unchanged. */
const reference = /\$\{(?:(?:env:)?([A-Za-z_]\w*)|input:([^}:]+))(?::-([^}]*))?\}/g;

/** Skips the text after the last brace, where the pattern would take quadratic time. */
export function replaceReferences(
  text: string,
  pattern: RegExp,
  by: (whole: string, ...groups: string[]) => string,
): string {
  const closed = untilLastBrace(text);
  return closed.replace(pattern, by) + text.slice(closed.length);
}

function untilLastBrace(text: string): string {
  return text.slice(0, text.lastIndexOf('}') + 1);
}

interface MissingVariable {
  name: string;
  /** The field that uses it, such as `env.TOKEN`. */
  place: string;
  /** Whether it is an editor's input, which the editor would prompt for. */
  prompted: boolean;
}

/**
 * Runs on connect, not on load: a missing variable then fails one server only, and values are not kept longer than needed.
 */
export function resolveVariables(
  transport: ServerTransport,
  serverName: string,
  lookup: (name: string) => string | undefined,
  project?: string,
): ServerTransport {
  if (transport.type === 'hosted') return transport;
  const missing: MissingVariable[] = [];
  const resolved = filled(transport, lookup, missing);
  if (missing.length > 0) throw needsVariables(serverName, missing, project);
  checkResolved(resolved, serverName);
  return resolved;
}

/** Fills in all variables that are set, and returns the others. */
export function fillPresent(
  transport: ServerTransport,
  lookup: (name: string) => string | undefined,
): { transport: ServerTransport; missing: MissingVariable[] } {
  const missing: MissingVariable[] = [];
  return { transport: transport.type === 'hosted' ? transport : filled(transport, lookup, missing), missing };
}

export function unsetVariables(
  { command = '', args = [], env = {}, cwd = '', url = '', headers = {} }: ServerEntry,
  lookup: (name: string) => string | undefined,
): string[] {
  const transport: ServerTransport =
    url === '' ? { type: 'stdio', command, args, env, cwd } : { type: 'http', url, headers };
  return missingVariables(transport, lookup);
}

/** Names without duplicates; variables with a default are never missing. */
export function missingVariables(
  transport: ServerTransport,
  lookup: (name: string) => string | undefined,
): string[] {
  const { missing } = fillPresent(transport, lookup);
  return [...new Set(missing.map(({ name, prompted }) => (prompted ? variableForInput(name) : name)))];
}

/** Adds variables that are not set to `missing`. */
function filled(
  transport: Exclude<ServerTransport, { type: 'hosted' }>,
  lookup: (name: string) => string | undefined,
  missing: MissingVariable[],
): ServerTransport {
  const fill = (text: string, place: string): string =>
    replaceReferences(text, reference, (whole, variable?: string, input?: string, fallback?: string) => {
      const name = variable ?? input ?? '';
      const value = lookup(name) ?? lookup(variableForInput(name));
      if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
      if (value !== undefined) return value;
      missing.push({ name, place, prompted: input !== undefined });
      return whole;
    });
  const fillAll = (values: Record<string, string>, place: string): Record<string, string> =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, fill(value, `${place}.${name}`)]),
    );

  return transport.type === 'stdio'
    ? {
        ...transport,
        command: fill(transport.command, 'command'),
        args: transport.args.map((argument, index) => fill(argument, `args[${index}]`)),
        env: fillAll(transport.env, 'env'),
        cwd: fill(transport.cwd, 'cwd'),
      }
    : { ...transport, url: fill(transport.url, 'url'), headers: fillAll(transport.headers, 'headers') };
}

/** Fills in known variables, and leaves other references unchanged. */
export function fillKnown(text: string, lookup: (name: string) => string | undefined): string {
  return text.replace(reference, (whole, variable?: string) =>
    variable === undefined ? whole : (lookup(variable) ?? whole),
  );
}

export function referencesIn(text: string): { name: string; isInput: boolean }[] {
  return [...untilLastBrace(text).matchAll(reference)].map(([, variable, input = '']) => ({
    name: variable ?? input,
    isInput: variable === undefined,
  }));
}

export function variablesOf(transport: ServerTransport): Set<string> {
  return variablesIn(textsOf(transport));
}

export function variablesIn(texts: readonly string[]): Set<string> {
  const references = texts.flatMap(referencesIn);
  return new Set(references.map(({ name, isInput }) => (isInput ? variableForInput(name) : name)));
}

function textsOf(transport: ServerTransport): string[] {
  switch (transport.type) {
    case 'stdio':
      return [transport.command, transport.cwd, ...transport.args, ...Object.values(transport.env)];
    case 'hosted':
      return [];
    default:
      return [transport.url, ...Object.values(transport.headers)];
  }
}

/** Input ids may contain characters that shells do not allow in variable names; those become underscores. */
export function variableForInput(id: string): string {
  return id.replace(/\W/g, '_');
}

function needsVariables(
  serverName: string,
  missing: MissingVariable[],
  project: string | undefined,
): SwitchboardError {
  const lines = missing.map(({ name, place, prompted }) => {
    if (project !== undefined) {
      return `the variable ${name} (in ${place}), which is not a secret of its project: set it with: switchboard secret set ${variableForInput(name)} -P ${project}`;
    }
    return prompted
      ? `the input ${name} (in ${place}), for which Switchboard does not prompt: set the variable ${variableForInput(name)}`
      : `the variable ${name} (in ${place}), which is not set: set it, or give a default with \${${name}:-…}`;
  });
  const variables = [...new Set(missing.map(({ name }) => name))];
  return new SwitchboardError('invalid_config', `the server "${serverName}" needs ${lines.join('; and ')}`, {
    data: { server: serverName, variables },
  });
}

/** Checks that need resolved values. The errors do not show them, because they may be secret. */
function checkResolved(transport: ServerTransport, serverName: string): void {
  const fail = (what: string): never => {
    throw new SwitchboardError(
      'invalid_config',
      `the server "${serverName}": with its variables filled in, ${what}`,
      {
        data: { server: serverName },
      },
    );
  };
  if (transport.type === 'stdio') {
    if (!isAbsolute(transport.cwd)) fail('cwd is not an absolute path');
    if (transport.command === '') fail('command is empty');
    return;
  }
  if (transport.type === 'hosted') return;
  if (!isHttpUrl(transport.url)) fail('url is not an http or https URL');
  for (const [name, value] of Object.entries(transport.headers)) {
    if (/[\r\n\0]/.test(value))
      fail(`the header ${name} has a line break in it, often the end of the file it is from`);
  }
}

export function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && ['http:', 'https:'].includes(new URL(text).protocol);
}
