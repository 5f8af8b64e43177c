/** What a credential was found as. */
interface Found {
  value: string;
  /** The variable, header, parameter or option that it stands in. */
  label: string;
  /** Whether it is the default of a reference to the variable `label`. */
  isDefault: boolean;
}

type Replace = (found: Found) => string;

/** Words of names whose values are credentials. */
const secretWord =
  /^(?:token|key|apikey|accesskey|secretkey|authkey|accesstoken|authtoken|secret|clientsecret|password|passwd|passphrase|pass|pw|pat|auth|authorization|credential|credentials|bearer|jwt|cookie|dsn|signature|sig)\d*$/;
/** They are run together with others, too: PGPASSWORD. */
const secretEnd = /(?:password|passwd|token|secret|apikey|sshpass)\d*$/;
/** Last words of names that tell about a credential, and are none. */
const harmlessEnd =
  /^(?:file|path|dir|folder|type|kind|limit|count|id|name|user|username|url|uri|host|port|ttl|mode|method|enabled|disabled|required|expiry|expires|timeout|size|length|algorithm|alg|header|prefix|scheme|sock|socket|scope|scopes|version|region|provider|store|server|issuer|audience|cache|budget)$/;
const harmlessValue = /^(?:true|false|yes|no|on|off|none|null|undefined|\*+)?$/i;

/** Tokens that can be told by how they look. */
const shapes = [
  /gh[pousr]_[A-Za-z0-9]{16,}/,
  /github_pat_\w{16,}/,
  /gl(?:pat|dt|rt|soat)-[\w-]{16,}/,
  /\b(?:sk|rk|pk)[-_](?=[\w-]{0,200}\d)[\w-]{16,}/,
  /xox[abeoprs]-[\w-]{10,}/,
  /xapp-[\w-]{10,}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bAIza[\w-]{30,}/,
  /\bya29\.[\w-]{16,}/,
  /\beyJ[\w-]{8,2000}\.[\w-]{8,}\.[\w-]*/,
  /\bnpm_[A-Za-z0-9]{20,}/,
  /\bhf_[A-Za-z0-9]{16,}/,
  /\b(?:dop|doo)_v1_[a-f0-9]{16,}/,
  /\blin_api_[A-Za-z0-9]{16,}/,
  /\b(?:ntn|secret)_[A-Za-z0-9]{20,}/,
  /\bSG\.[\w-]{10,}\.[\w-]{10,}/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/,
];
const shape = new RegExp(shapes.map(({ source }) => `(?:${source})`).join('|'), 'g');
/** Of the header Authorization. Any other first word may be a part of a passphrase. */
const authScheme =
  /^((?:bearer|basic|token|apikey|api-key|key|jwt|oauth|bot|ssws|sso-key|negotiate)[ \t]+)(\S+)$/i;
/** What stands behind these is a credential, whatever the name: AUTH_HEADER. */
const authValue = /^((?:[\w-]+:[ \t]*)?(?:bearer|basic)[ \t]+)(\S{8,})$/i;
const reference = /\$\{[^}]{0,1000}\}/;
/** As `variables.ts` reads them; only those with a default are of interest. */
const withDefault = /\$\{(?:env:)?([A-Za-z_]\w*):-([^}]{1,1000})\}/g;
/** How a user name without a password has to look to be a token: `https://token@host`. */
const LONE_TOKEN = 16;

/** Whether the value of something of this name is a credential. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name);
  const isSecret = (word: string) => secretWord.test(word) || secretEnd.test(word);
  // By itself it is a folder.
  if (words.length > 1 && words.at(-1) === 'pwd') return true;
  return words.some(isSecret) && !harmlessEnd.test(words.at(-1) ?? '');
}

/** `apiKey`, `API_KEY` and `api-key` are the same words. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '');
}

/** The text with everything that looks like a credential replaced. `label`: the name that the text is the value of. */
function inText(text: string, label: string | undefined, replace: Replace): string {
  const isSecret = label !== undefined && isSecretName(label);
  const tidy = text.replace(withDefault, (whole, variable: string, value: string) =>
    isSecret || isSecretName(variable) || looksSecret(value)
      ? harmlessValue.test(value)
        ? whole
        : replace({ value, label: variable, isDefault: true })
      : whole,
  );
  if (isSecret && !reference.test(tidy) && !tidy.includes('://')) {
    return harmlessValue.test(tidy) ? tidy : inSecretValue(tidy, label, replace);
  }
  const [, scheme = '', value = ''] = authValue.exec(tidy) ?? [];
  if (value !== '' && !reference.test(value))
    return `${scheme}${replace({ value, label: label ?? 'TOKEN', isDefault: false })}`;
  return inWords(tidy, label ?? 'TOKEN', replace);
}

/** How a token is used is no secret, and the token alone is what others may show: `Bearer …`, `session=…`. */
function inSecretValue(text: string, label: string, replace: Replace): string {
  const [, scheme = '', value = text] = authScheme.exec(text) ?? [];
  return `${scheme}${replace({ value, label, isDefault: false })}`;
}

function inWords(text: string, label: string, replace: Replace): string {
  const unless = (value: string, found: string) =>
    reference.test(value) || harmlessValue.test(value)
      ? value
      : replace({ value, label: found, isDefault: false });
  return text
    .replace(
      /(\w:\/\/)([^\s/?#@:]*)(?::([^\s/?#]*))?@/g,
      (whole, start: string, user: string, password?: string) => {
        if (password !== undefined) return `${start}${user}:${unless(password, 'PASSWORD')}@`;
        return user.length >= LONE_TOKEN ? `${start}${unless(user, 'TOKEN')}@` : whole;
      },
    )
    .replace(
      /(^|[?&#;\s])([^=&#;\s?]{1,200})=([^&#;\s"']+)/g,
      (whole, start: string, name: string, value: string) =>
        isSecretName(decoded(name)) ? `${start}${name}=${unless(value, decoded(name))}` : whole,
    )
    .replace(
      /("([^"\\]+)"\s*:\s*")((?:[^"\\]|\\.)+)"/g,
      (whole, start: string, name: string, value: string) =>
        isSecretName(name) ? `${start}${unless(value, name)}"` : whole,
    )
    .replace(shape, (value) => replace({ value, label, isDefault: false }));
}

function looksSecret(text: string): boolean {
  let isFound = false;
  inWords(text, '', ({ value }) => {
    isFound = true;
    return value;
  });
  return isFound;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `--api-key=…`, `--api-key …`, `TOKEN=…` as for `docker run -e`, `Authorization: …` as for mcp-remote. */
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
    return inOne(argument);
  });
}

/** What stands behind an option need not be its value, so its name has to end with the word. */
function endsSecretly(option: string): boolean {
  return secretWord.test(wordsOf(option).at(-1) ?? '') && isSecretName(option);
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

/** Moves credentials to where secrets are kept, and leaves references. `keep` gives the name that each has there. */
export function moveCredentials<Config extends object>(
  server: string,
  config: Config,
  keep: (wanted: string, value: string, isDefault: boolean) => string,
): Config {
  return replaceCredentials(config, ({ value, label, isDefault }) => {
    const wanted = isDefault ? label : secretName(server, label);
    return `\${${keep(wanted, value, isDefault)}}`;
  });
}

/** `GITHUB_AUTHORIZATION` for the header of the server "github"; what begins with the server's name says it once. */
function secretName(server: string, label: string): string {
  const words = (text: string) => wordsOf(text).join('_').toUpperCase();
  const [owner, own] = [words(server), words(label)];
  const name = owner === '' || own === owner || own.startsWith(`${owner}_`) ? own : `${owner}_${own}`;
  return name.replace(/^(?=\d)/, '_').slice(0, 100) || 'TOKEN';
}
