import { endsSecretly, inText, isSecretName, type Replace, wordsOf } from './credential-text.ts';

/** `--api-key=…`, `--api-key …`, `TOKEN=…` as for `docker run -e`, `Authorization: …` as for mcp-remote; `sh -c` takes a command. */
function inArguments(args: readonly unknown[], replace: Replace): unknown[] {
  const inOne = (argument: string, isValue = false): string => {
    const [, start, name, value] =
      /^((?:--?)?([A-Za-z_][\w.-]*)(?:=|:[ \t]*(?!\/\/)))([\s\S]+)$/.exec(argument) ?? [];
    if (name !== undefined && isSecretName(name)) return `${start}${inText(value!, name, replace)}`;
    // `--env=TOKEN=…`, `--header=Authorization: …`
    const isOption = !isValue && name !== undefined && start!.startsWith('-');
    return isOption ? `${start}${inOne(value!, true)}` : inText(argument, undefined, replace);
  };
  return args.map((argument, index) => {
    if (typeof argument !== 'string') return argument;
    const before = args[index - 1];
    const option = typeof before === 'string' ? /^--?([A-Za-z][\w.-]*)$/.exec(before)?.[1] : undefined;
    if (option !== undefined && !argument.startsWith('-') && endsSecretly(option)) {
      return inText(argument, option, replace);
    }
    return before === '-c' ? inText(argument, undefined, replace) : inOne(argument);
  });
}

function inMap(values: object, replace: Replace): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'string' ? inText(value, name, replace) : value,
    ]),
  );
}

/**
 * How a server is reached or run, with everything replaced that looks like a credential: in a configuration, a manifest's
 * entry, or a hosted server's. What else is in it stays.
 */
function replaceCredentials<Config extends object>(config: Config, replace: Replace): Config {
  const entries = Object.entries(config).map(([key, value]: [string, unknown]) => {
    if (['env', 'headers', 'environment'].includes(key) && typeof value === 'object' && value !== null) {
      return [key, inMap(value, replace)];
    }
    if (key === 'args' && Array.isArray(value)) return [key, inArguments(value, replace)];
    if ((key === 'url' || key === 'command') && typeof value === 'string') {
      return [key, inText(value, undefined, replace)];
    }
    return [key, value];
  });
  return Object.fromEntries(entries) as Config;
}

export const MASK = '***';

/** The same for the eyes of everybody. */
export function maskCredentials<Config extends object>(config: Config): Config {
  return replaceCredentials(config, ({ label, isDefault }) => (isDefault ? `\${${label}:-${MASK}}` : MASK));
}

/** Puts back what was masked in a configuration that somebody has read and sends back, changed elsewhere. */
export function unmaskCredentials<Config extends object>(given: Config, stored: object): Config {
  return restored(given, maskCredentials(stored), stored) as Config;
}

function restored(given: unknown, masked: unknown, stored: unknown): unknown {
  if (typeof given === 'string') return given === masked && given.includes(MASK) ? stored : given;
  if (typeof given !== 'object' || given === null || typeof masked !== 'object' || masked === null)
    return given;
  const at = (whole: unknown, key: string) => (whole as Record<string, unknown> | undefined)?.[key];
  const entries = Object.entries(given).map(
    ([key, value]) => [key, restored(value, at(masked, key), at(stored, key))] as const,
  );
  return Array.isArray(given) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
}

/** The credentials that stand in a configuration as they are. */
export function credentialsIn(config: object): string[] {
  const found: string[] = [];
  replaceCredentials(config, ({ value }) => {
    found.push(value);
    return value;
  });
  return found;
}

/** Moves credentials to where secrets are kept, and leaves references. `keep` gives the name that each has there, if it has. */
export function moveCredentials<Config extends object>(
  server: string,
  config: Config,
  keep: (wanted: string, value: string, isDefault: boolean) => string | undefined,
): Config {
  return replaceCredentials(config, ({ value, label, isDefault }) => {
    const name = keep(isDefault ? label : secretName(server, label), value, isDefault);
    if (name !== undefined) return `\${${name}}`;
    return isDefault ? `\${${label}:-${value}}` : value;
  });
}

/** `GITHUB_AUTHORIZATION` for the header of the server "github"; what begins with the server's name says it once. */
function secretName(server: string, label: string): string {
  const words = (text: string) => wordsOf(text).join('_').toUpperCase();
  const [owner, own] = [words(server), words(label)];
  const name = owner === '' || own === owner || own.startsWith(`${owner}_`) ? own : `${owner}_${own}`;
  return name.replace(/^(?=\d)/, '_').slice(0, 100) || 'TOKEN';
}
