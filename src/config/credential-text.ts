interface Found {
  value: string;
  /** The variable, header, parameter or option that holds it. */
  label: string;
  /** Whether it is the default of a reference to the variable `label`. */
  isDefault: boolean;
}

export type Replace = (found: Found) => string;

/** Words that mark a name as that of a credential. */
const secretWord =
  /^(?:token|key|apikey|accesskey|secretkey|authkey|accesstoken|authtoken|secret|clientsecret|password|passwd|passphrase|pass|pw|pat|auth|authorization|credential|credentials|bearer|jwt|cookie|dsn|signature|sig)\d*$/;
/** Endings of compound words: PGPASSWORD, MYPASS, but not COMPASS. */
const secretEnd = /(?:password|passwd|token|secret|apikey|(?<!by|com|over|sur|tres|under)pass)\d*$/;
/** A name that ends with one of these describes a credential but does not hold one: TOKEN_FILE. */
const harmlessEnd =
  /^(?:file|path|dir|folder|type|kind|limit|count|id|name|user|username|url|uri|host|port|ttl|mode|method|enabled|disabled|required|expiry|expires|timeout|size|length|algorithm|alg|header|prefix|scheme|sock|socket|scope|scopes|version|region|provider|store|server|issuer|audience|cache|budget)$/;
const harmlessValue = /^(?:true|false|yes|no|on|off|none|null|undefined|\*+)?$/i;

/** Tokens with a recognizable format. */
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
/** Schemes of the Authorization header. Any other first word may be part of a passphrase. */
const authScheme =
  /^((?:bearer|basic|token|apikey|api-key|key|jwt|oauth|bot|ssws|sso-key|negotiate)[ \t]+)(\S+)$/i;
/** The value after these is a credential, whatever the name: AUTH_HEADER. */
const authValue = /^((?:[\w-]+:[ \t]*)?(?:bearer|basic)[ \t]+)(\S{8,})$/i;
const reference = /\$\{[^}]{0,1000}\}/;
/** The same syntax as in `variables.ts`, limited to references with a default. */
const withDefault = /\$\{(?:env:)?([A-Za-z_]\w*):-([^}]{1,1000})\}/g;
const pathBehindReference = /^(?:\$\{[^}]{0,1000}\}|~|\.{1,2})?\//;
const referenceOrWord = /\$\{[^}]{0,1000}\}|[^\s:;,@&?=|$"']+/g;
const mixedWord = /^(?=.*\d)(?=.*[A-Za-z]).{8,}$/;
/** Values of command options that are not credentials: a number, a path, a shell expansion, another option. */
const harmlessWord = /^(?:\d+$|~?\.{0,2}\/|\$|`|[<>|&;-])/;
/** The minimum length at which a user name without a password counts as a token: `https://token@host`. */
const LONE_TOKEN = 16;

/** Whether a variable, header or option with this name holds a credential. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name);
  const isSecret = (word: string) => secretWord.test(word) || secretEnd.test(word);
  // PWD alone is the working directory.
  if (words.length > 1 && words.at(-1) === 'pwd') return true;
  return words.some(isSecret) && !harmlessEnd.test(words.at(-1) ?? '');
}

/** Splits `apiKey`, `API_KEY` and `api-key` into the same words. */
export function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '');
}

/** The word after an option need not be its value, so only names that end with a secret word count. */
export function endsSecretly(option: string): boolean {
  return secretWord.test(wordsOf(option).at(-1) ?? '') && isSecretName(option);
}

/** Replaces everything that looks like a credential. `label` is the name whose value the text is. */
export function inText(text: string, label: string | undefined, replace: Replace): string {
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
  const rest = isSecret && !tidy.includes('://') ? besideReferences(tidy, label, replace) : tidy;
  const [, scheme = '', value = ''] = authValue.exec(rest) ?? [];
  if (value !== '' && !reference.test(value))
    return `${scheme}${replace({ value, label: label ?? 'TOKEN', isDefault: false })}`;
  return inWords(rest, label ?? 'TOKEN', replace);
}

/** Keeps the scheme, which is not secret: `Bearer …`. */
function inSecretValue(text: string, label: string, replace: Replace): string {
  const [, scheme = '', value = text] = authScheme.exec(text) ?? [];
  return `${scheme}${replace({ value, label, isDefault: false })}`;
}

/** Replaces literal credentials next to references: `${PREFIX}abc123…`. Words that are short or have no digits are kept. */
function besideReferences(text: string, label: string, replace: Replace): string {
  // A path below a folder that a variable names is a file.
  if (pathBehindReference.test(text)) return text;
  return text.replace(referenceOrWord, (word) =>
    word.startsWith('$') || !mixedWord.test(word)
      ? word
      : replace({ value: word, label: `${label}_PART`, isDefault: false }),
  );
}

function inWords(text: string, label: string, replace: Replace): string {
  const unless = (value: string, found: string) =>
    reference.test(value) || harmlessValue.test(value)
      ? value
      : replace({ value, label: found, isDefault: false });
  const quoted = (value: string, found: string) => {
    const inner = unquoted(value);
    return inner === value ? unless(value, found) : `${value[0]}${unless(inner, found)}${value[0]}`;
  };
  return (
    text
      .replace(
        // After a colon, anything but a port is a password, which may contain any character.
        /(\w:\/\/)(?!\[)([^\s/?#@:]*)(?::([^\s/?#]*|(?!\d{0,5}[/?#])[^\s@"']{1,200}))?@/g,
        (whole, start: string, user: string, password?: string) => {
          if (password !== undefined) return `${start}${user}:${unless(password, 'PASSWORD')}@`;
          return user.length >= LONE_TOKEN ? `${start}${unless(user, 'TOKEN')}@` : whole;
        },
      )
      .replace(
        /(^|[?&#;\s])([^=&#;\s?]{1,200})=("[^"]+"|'[^']+'|[^&#;\s"']+)/g,
        (whole, start: string, name: string, value: string) =>
          isSecretName(decoded(name)) ? `${start}${name}=${quoted(value, decoded(name))}` : whole,
      )
      // In a command: `server --api-key …`, `curl -H 'Authorization: …'`.
      .replace(
        /((?:^|\s)--?([A-Za-z][\w.-]{0,100})[ \t]{1,20})("[^"]+"|'[^']+'|[^\s"']+)/g,
        (whole, start: string, name: string, value: string) =>
          endsSecretly(name) && !harmlessWord.test(unquoted(value))
            ? `${start}${quoted(value, name)}`
            : whole,
      )
      .replace(
        /(["'])([A-Za-z][\w-]{0,100})(:[ \t]{1,20})([^"']+)(?=\1)/g,
        (whole, quote: string, name: string, between: string, value: string) =>
          isSecretName(name) && !reference.test(value) && !harmlessValue.test(value)
            ? `${quote}${name}${between}${inSecretValue(value, name, replace)}`
            : whole,
      )
      .replace(
        /("([^"\\]+)"\s*:\s*")((?:[^"\\]|\\.)+)"/g,
        (whole, start: string, name: string, value: string) =>
          isSecretName(name) ? `${start}${unless(value, name)}"` : whole,
      )
      .replace(shape, (value) => replace({ value, label, isDefault: false }))
  );
}

function unquoted(value: string): string {
  return /^["']/.test(value) ? value.slice(1, -1) : value;
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
