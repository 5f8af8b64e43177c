import { SwitchboardError } from '../errors.ts';
import { MalformedResponseError } from './http-client/response-head.ts';
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

export function statusError(status: number, url: URL, body: string, location?: string): SwitchboardError {
  const hint =
    status === 401 || status === 403
      ? ' Check the configured headers.'
      : location !== undefined
        ? ` It redirects to ${location}: configure that URL.`
        : '';
  const statement = `${url.origin}${url.pathname} answered HTTP ${status}.${hint}${body === '' ? '' : ' It said: '}`;
  return new QuotingError(
    'server_unavailable',
    { statement, quote: body, shown: SHOWN_CHARACTERS },
    { status },
  );
}

export function sessionForgotten(url: URL): SwitchboardError {
  return new SwitchboardError(
    'server_unavailable',
    `${url.origin}${url.pathname} has forgotten our session.`,
  );
}
