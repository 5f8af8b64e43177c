/** The server sent something that is not a valid HTTP/1.1 response. */
export class MalformedResponseError extends Error {
  override readonly name = 'MalformedResponseError';
}

/** Body lengths that are not known from the head. */
export const CHUNKED = -1;
export const UNTIL_CLOSE = -2;

export interface ResponseHead {
  readonly status: number;
  /** In lower case; empty if absent. */
  readonly contentType: string;
  readonly sessionId: string | undefined;
  readonly location: string | undefined;
  readonly retryAfter: string | undefined;
  /** The body's length, CHUNKED or UNTIL_CLOSE. */
  readonly bodyBytes: number;
  /** How long the connection may be reused after this response; 0 if it may not. */
  readonly keepAliveMs: number;
}

/** Servers close idle connections after 5 s or more; a request must not race with that. */
const DEFAULT_KEEP_ALIVE_MS = 3_000;
const MAX_KEEP_ALIVE_MS = 30_000;
/** A busy machine may see a closed connection a second late. */
const KEEP_ALIVE_MARGIN_MS = 2_000;

// Rejects folded lines (obs-fold), which have no name.
const wellFormed =
  /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)*$/;

/** Parses the response heads of one server. Most equal the previous one, which is parsed once. */
export class HeadReader {
  private text: string | undefined;
  private head: ResponseHead | undefined;

  /** `text` ends before the empty line, without the last line break. */
  read(text: string): ResponseHead {
    if (this.head !== undefined && text === this.text) return this.head;
    const head = readHead(text);
    this.text = text;
    this.head = head;
    return head;
  }
}

function readHead(text: string): ResponseHead {
  if (!wellFormed.test(text)) throw new MalformedResponseError('its head is not HTTP/1.1');
  const status = Number(text.slice(9, 12));
  let contentType: string | undefined;
  let sessionId: string | undefined;
  let location: string | undefined;
  let retryAfter: string | undefined;
  let length: number | undefined;
  let codings: string | undefined;
  let connection = '';
  let keepAlive = '';
  let lineStart = text.indexOf('\r\n') + 2;
  while (lineStart > 1) {
    const lineEnd = text.indexOf('\r\n', lineStart);
    const colon = text.indexOf(':', lineStart);
    // Extracts only names with the length of a header that is used.
    switch (colon - lineStart) {
      case 8:
        if (nameAt(text, lineStart, colon) === 'location') location ??= valueAt(text, colon, lineEnd);
        break;
      case 10: {
        const name = nameAt(text, lineStart, colon);
        if (name === 'connection') connection = `${connection},${valueAt(text, colon, lineEnd)}`;
        else if (name === 'keep-alive') keepAlive = valueAt(text, colon, lineEnd);
        break;
      }
      case 11:
        if (nameAt(text, lineStart, colon) === 'retry-after') retryAfter ??= valueAt(text, colon, lineEnd);
        break;
      case 12:
        if (nameAt(text, lineStart, colon) === 'content-type') contentType ??= valueAt(text, colon, lineEnd);
        break;
      case 14: {
        const name = nameAt(text, lineStart, colon);
        if (name === 'content-length') length = lengthOf(valueAt(text, colon, lineEnd), length);
        else if (name === 'mcp-session-id') sessionId ??= valueAt(text, colon, lineEnd);
        break;
      }
      case 17:
        if (nameAt(text, lineStart, colon) === 'transfer-encoding') {
          const value = valueAt(text, colon, lineEnd);
          codings = codings === undefined ? value : `${codings},${value}`;
        }
    }
    lineStart = lineEnd === -1 ? 0 : lineEnd + 2;
  }
  const bodyBytes = framing(status, length, codings);
  // Both lengths at once allow response smuggling, and HTTP/1.0 has no chunks.
  const isDoubtful = codings !== undefined && (length !== undefined || text[7] === '0');
  return {
    status,
    contentType: contentType?.toLowerCase() ?? '',
    sessionId: sessionId || undefined,
    location,
    retryAfter,
    bodyBytes,
    keepAliveMs:
      bodyBytes === UNTIL_CLOSE || isDoubtful
        ? 0
        : keepAliveMs(text[7]!, connection.toLowerCase(), keepAlive),
  };
}

function nameAt(text: string, start: number, colon: number): string {
  return text.slice(start, colon).toLowerCase();
}

function valueAt(text: string, colon: number, lineEnd: number): string {
  return text.slice(colon + 1, lineEnd === -1 ? undefined : lineEnd).trim();
}

function lengthOf(value: string, before: number | undefined): number {
  // A proxy may join equal lengths with commas.
  const values = value.includes(',') ? value.split(',').map((part) => part.trim()) : [value];
  const length = /^\d+$/.test(values[0]!) ? Number(values[0]) : Number.NaN;
  if (!Number.isSafeInteger(length)) throw new MalformedResponseError('its Content-Length is not a number');
  if (values.some((other) => other !== values[0]) || (before !== undefined && before !== length)) {
    throw new MalformedResponseError('it has two different values of Content-Length');
  }
  return length;
}

function framing(status: number, length: number | undefined, codings: string | undefined): number {
  if (status < 200 || status === 204 || status === 304) return 0;
  if (codings === undefined) return length ?? UNTIL_CLOSE;
  if (codings.toLowerCase() === 'chunked') return CHUNKED;
  throw new MalformedResponseError(`it has an unsupported Transfer-Encoding (${codings})`);
}

function keepAliveMs(minorVersion: string, connection: string, hint: string): number {
  const options = connection.split(',').map((option) => option.trim());
  if (options.includes('close')) return 0;
  if (minorVersion === '0' && !options.includes('keep-alive')) return 0;
  const seconds = /(?:^|[,;\s])timeout\s*=\s*"?(\d+)/i.exec(hint)?.[1];
  if (seconds === undefined) return DEFAULT_KEEP_ALIVE_MS;
  return Math.min(Math.max(Number(seconds) * 1_000 - KEEP_ALIVE_MARGIN_MS, 0), MAX_KEEP_ALIVE_MS);
}
