import { type ErrorCode, SwitchboardError } from '../errors.ts';
import { MalformedResponseError, type ResponseHead } from './http-client/response-head.ts';

/** How much of a quote is kept until its secrets are masked. */
const MAX_QUOTE = 8 * 1024;
/** How much of the body of an HTTP error is shown. */
const SHOWN_BODY = 300;

/**
 * An error that ends with output of a server. The quote is cut only after its secrets are masked: half a secret would not be
 * recognized.
 */
export class QuotingError extends SwitchboardError {
  private readonly statement: string;
  private readonly quote: string;
  private readonly shown: number;

  constructor(
    code: ErrorCode,
    text: { statement: string; quote: string; shown: number },
    data: Record<string, unknown>,
  ) {
    const quote = text.quote.slice(0, MAX_QUOTE);
    super(code, `${text.statement}${quote}`, { data });
    this.statement = text.statement;
    this.quote = quote;
    this.shown = text.shown;
  }

  masked(mask: (text: string) => string): SwitchboardError {
    const quote = mask(this.quote);
    const shown = quote.length > this.shown ? `${quote.slice(0, this.shown)} …` : quote;
    return new SwitchboardError(this.code, `${mask(this.statement)}${shown}`, { data: this.data });
  }
}

export function tooLarge(maxBytes: number): SwitchboardError {
  return new SwitchboardError(
    'answer_too_large',
    `The server sent a message over ${maxBytes} bytes (setting maxMessageBytes).`,
  );
}

export function networkError(error: Error, url: URL): SwitchboardError {
  if (error instanceof SwitchboardError) return error;
  if (error instanceof MalformedResponseError) {
    const message = `${url.origin} sent an invalid HTTP response: ${error.message}`;
    return new SwitchboardError('server_protocol_error', message, { cause: error });
  }
  const code = (error as NodeJS.ErrnoException).code;
  const what = code === undefined ? error.message : `${code}${error.message ? ` (${error.message})` : ''}`;
  return new SwitchboardError('server_unavailable', `${url.origin} cannot be reached: ${what}`, {
    cause: error,
  });
}

export function statusError(
  status: number,
  url: URL,
  body: string,
  { location, retryAfter }: Partial<Pick<ResponseHead, 'location' | 'retryAfter'>> = {},
): SwitchboardError {
  const retryAfterMs = retryAfter === undefined ? undefined : parseRetryAfter(retryAfter);
  const hint =
    status === 401 || status === 403
      ? ' Check the configured headers.'
      : location !== undefined
        ? ` It redirects to ${location}: configure that URL.`
        : retryAfterMs !== undefined
          ? ` It asks to retry in ${Math.ceil(retryAfterMs / 1_000)} s.`
          : '';
  const statement = `${url.origin}${url.pathname} responded with HTTP ${status}.${hint}${body === '' ? '' : ' Response: '}`;
  return new QuotingError(
    'server_unavailable',
    { statement, quote: body, shown: SHOWN_BODY },
    retryAfterMs === undefined ? { status } : { status, retryAfterMs },
  );
}

/** A server that responds with one of these (too busy, not in service) has not started on the request. */
const refusals: ReadonlySet<unknown> = new Set([429, 503]);

export function isRefusal(status: unknown): boolean {
  return refusals.has(status);
}

/** Milliseconds until the time in a Retry-After header, which is a number of seconds or a date. */
function parseRetryAfter(value: string): number | undefined {
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  // One of the formats has no time zone; it is always GMT.
  const date = value.endsWith('GMT') ? value : `${value} GMT`;
  const ms = httpDate.test(value) ? Date.parse(date) - Date.now() : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Date.parse accepts much more than the formats of HTTP, which all start with a weekday and have a time. */
const httpDate = /^[A-Z][a-z]{2,8},? [\w -]*\d\d:\d\d:\d\d/;

export function sessionLost(url: URL): SwitchboardError {
  return new SwitchboardError('server_unavailable', `${url.origin}${url.pathname} lost our session.`);
}

export function noResponse(url: URL): SwitchboardError {
  return new SwitchboardError(
    'server_protocol_error',
    `${url.origin} ended the HTTP response without a JSON-RPC response.`,
  );
}
