import { SwitchboardError } from '../errors.ts';
import { MalformedResponseError, type ResponseHead } from './http-client/response-head.ts';
import { QuotingError } from './quoting-error.ts';

/** Of what a server says with a refusal. */
const SHOWN_CHARACTERS = 300;

export interface HttpTarget {
  url: string;
  headers: Record<string, string>;
  /** Whether we are known there by these headers, and have to say when we go. */
  isNamed?: boolean;
  /** Looks at each connection before anything is sent on it, and fails where it must not be used. */
  vet?: () => Promise<void>;
}

export function networkError(error: Error, url: URL): SwitchboardError {
  if (error instanceof SwitchboardError) return error;
  if (error instanceof MalformedResponseError) {
    return new SwitchboardError(
      'server_protocol_error',
      `${url.origin} cannot be understood: ${error.message}`,
      {
        cause: error,
      },
    );
  }
  const code = (error as NodeJS.ErrnoException).code;
  const what = code === undefined ? error.message : `${code}${error.message ? ` (${error.message})` : ''}`;
  return new SwitchboardError('server_unavailable', `${url.origin} cannot be reached: ${what}`, {
    cause: error,
  });
}

/** What the head of an answer says beside its status. */
type StatusHints = Partial<Pick<ResponseHead, 'location' | 'retryAfter'>>;

export function statusError(
  status: number,
  url: URL,
  body: string,
  { location, retryAfter }: StatusHints = {},
): SwitchboardError {
  const retryAfterMs = retryAfter === undefined ? undefined : retryAfterIn(retryAfter);
  const hint =
    status === 401 || status === 403
      ? ' Check the configured headers.'
      : location !== undefined
        ? ` It redirects to ${location}: configure that URL.`
        : retryAfterMs !== undefined
          ? ` It asks to be tried again in ${Math.ceil(retryAfterMs / 1_000)} s.`
          : '';
  const statement = `${url.origin}${url.pathname} answered HTTP ${status}.${hint}${body === '' ? '' : ' It said: '}`;
  return new QuotingError(
    'server_unavailable',
    { statement, quote: body, shown: SHOWN_CHARACTERS },
    retryAfterMs === undefined ? { status } : { status, retryAfterMs },
  );
}

/** Too busy, or not in service: a server that answers so has not begun with the request. */
const refusals: ReadonlySet<unknown> = new Set([429, 503]);

export function isRefusal(status: unknown): boolean {
  return refusals.has(status);
}

/** Milliseconds until the time in a Retry-After header, which is a number of seconds or a date. */
function retryAfterIn(value: string): number | undefined {
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  // One of its forms does not say that the time is that of Greenwich.
  const date = value.endsWith('GMT') ? value : `${value} GMT`;
  const ms = httpDate.test(value) ? Date.parse(date) - Date.now() : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Each form of a date in HTTP begins with its weekday and has a time of day: much else can be read as a date. */
const httpDate = /^[A-Z][a-z]{2,8},? [\w -]*\d\d:\d\d:\d\d/;

export function sessionForgotten(url: URL): SwitchboardError {
  return new SwitchboardError(
    'server_unavailable',
    `${url.origin}${url.pathname} has forgotten our session.`,
  );
}
