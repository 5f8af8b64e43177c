import { endsSecretly, inText, isSecretName, type Replace, wordsOf } from './credential-text.ts';

/** Handles `--api-key=…`, `--api-key …`, `TOKEN=…` (docker run -e), `Authorization: …` (mcp-remote) and commands (sh -c). */
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

/** Works on a server's configuration, a manifest entry and a hosted server. Other values are unchanged. */
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

export function maskCredentials<Config extends object>(config: Config): Config {
  return replaceCredentials(config, ({ label, isDefault }) => (isDefault ? `\${${label}:-${MASK}}` : MASK));
}

/** For text of any kind. */
export function maskText(text: string): string {
  return inText(text, undefined, () => MASK);
}

/** Restores masked values in a configuration that a client read, edited and sent back. */
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

/** The credentials that a configuration contains as literals. */
export function credentialsIn(config: object): string[] {
  const found: string[] = [];
  replaceCredentials(config, ({ value }) => {
    found.push(value);
    return value;
  });
  return found;
}

/** Replaces credentials with references. `keep` stores a secret and returns its name, or undefined if it cannot. */
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

/** `GITHUB_AUTHORIZATION` for that header of the server "github"; the server's name is not repeated. */
function secretName(server: string, label: string): string {
  const words = (text: string) => wordsOf(text).join('_').toUpperCase();
  const [owner, own] = [words(server), words(label)];
  const name = owner === '' || own === owner || own.startsWith(`${owner}_`) ? own : `${owner}_${own}`;
  return name.replace(/^(?=\d)/, '_').slice(0, 100) || 'TOKEN';
}
