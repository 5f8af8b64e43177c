import { SwitchboardError } from '../../errors.ts';

/** The connection, the framing and the protocol are ours; and an encoded answer could not be read. */
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

/** Whether this can stand in a header as it is. */
export function isHeaderValue(value: string): boolean {
  return headerValue.test(value);
}

/**
 * A request up to its headers' end, without Content-Length and the empty line. `configured` are the user's headers,
 * `own` win over them. Names are lower-cased, so that one header is not sent twice.
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

/** The value is not shown: it may be a secret. */
function checkHeader(name: string, value: string): void {
  if (!headerName.test(name)) {
    throw new SwitchboardError(
      'invalid_config',
      `The header name ${JSON.stringify(name)} is not a valid one.`,
    );
  }
  if (!isHeaderValue(value)) {
    throw new SwitchboardError(
      'invalid_config',
      `The value of the header "${name}" holds a line break or another character that a header cannot have.`,
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
