import { SwitchboardError } from '../../errors.ts';

/** Headers that we set ourselves, or that would break framing or encoding. */
const ownHeaders = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

export function isHeaderValue(value: string): boolean {
  return headerValue.test(value);
}

/**
 * The request line and headers, without Content-Length and the empty line. `own` headers win over the user's `configured` ones;
 * names are lower-cased, so that no header is sent twice.
 */
export function requestHead(
  method: string,
  url: URL,
  path: string,
  configured: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
): string {
  const headers = new Map<string, string>([['host', url.host]]);
  const credentials = basicCredentials(url);
  if (credentials !== undefined) headers.set('authorization', credentials);
  for (const [name, value] of Object.entries(configured)) {
    const lowerName = name.toLowerCase();
    if (!ownHeaders.has(lowerName)) headers.set(lowerName, value);
  }
  for (const [name, value] of Object.entries(own)) headers.set(name, value);
  let text = `${method} ${path} HTTP/1.1\r\n`;
  for (const [name, value] of headers) {
    checkHeader(name, value);
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

/** Does not show the value, which may be a secret. */
function checkHeader(name: string, value: string): void {
  if (!headerName.test(name)) {
    throw new SwitchboardError('invalid_config', `The header name ${JSON.stringify(name)} is invalid.`);
  }
  if (!isHeaderValue(value)) {
    throw new SwitchboardError(
      'invalid_config',
      `The value of the header "${name}" contains a line break or another invalid character.`,
    );
  }
}

export function basicCredentials({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  return `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`;
}

export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
