/** What a credential was found as. */
interface Found {
  value: string;
  /** The variable, header, parameter or option that it stands in. */
  label: string;
  /** Whether it is the default of a reference to the variable `label`. */
  isDefault: boolean;
}

export type Replace = (found: Found) => string;

/** Words of names whose values are credentials. */
const secretWord =
  /^(?:token|key|apikey|accesskey|secretkey|authkey|accesstoken|authtoken|secret|clientsecret|password|passwd|passphrase|pass|pw|pat|auth|authorization|credential|credentials|bearer|jwt|cookie|dsn|signature|sig)\d*$/;
/** They are run together with others, too: PGPASSWORD, MYPASS, but not COMPASS. */
const secretEnd = /(?:password|passwd|token|secret|apikey|(?<!by|com|over|sur|tres|under)pass)\d*$/;
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
const pathBehindReference = /^(?:\$\{[^}]{0,1000}\}|~|\.{1,2})?\//;
const referenceOrWord = /\$\{[^}]{0,1000}\}|[^\s:;,@&?=|$"']+/g;
const mixedWord = /^(?=.*\d)(?=.*[A-Za-z]).{8,}$/;
/** What an option in a command takes that is no credential: a number, a file, what the shell puts there, another option. */
const harmlessWord = /^(?:\d+$|~?\.{0,2}\/|\$|`|[<>|&;-])/;
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
export function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '');
}

/** What stands behind an option need not be its value, so its name has to end with the word. */
export function endsSecretly(option: string): boolean {
  return secretWord.test(wordsOf(option).at(-1) ?? '') && isSecretName(option);
}

/** The text with everything that looks like a credential replaced. `label`: the name that the text is the value of. */
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

/** How a token is used is no secret, and the token alone is what others may show: `Bearer …`, `session=…`. */
function inSecretValue(text: string, label: string, replace: Replace): string {
  const [, scheme = '', value = text] = authScheme.exec(text) ?? [];
  return `${scheme}${replace({ value, label, isDefault: false })}`;
}

/** What stands beside references where a credential is wanted: `${PREFIX}…`. Words of how it is used are short, or have no digits. */
function besideReferences(text: string, label: string, replace: Replace): string {
  // What is below a folder that a variable names is a file.
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
        // What is no port behind a colon is a password, which may have any sign in it.
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
