import { Pool } from 'undici';
import { SwitchboardError } from '../errors.ts';

export interface HttpTarget {
  url: string;
  headers: Record<string, string>;
}

/** Connections to one server, kept open between calls. Deadlines are the caller's business, not the pool's. */
export function openPool(url: URL): Pool {
  return new Pool(url.origin, {
    connections: 256,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: 10_000,
    keepAliveTimeout: 30_000,
  });
}

const refusals = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'EAI_AGAIN',
]);

/** True where the error says that no connection was made, so nothing can have reached the server. */
export function wasNeverSent(error: Error): boolean {
  return refusals.has((error as NodeJS.ErrnoException).code ?? '');
}

export function networkError(error: Error, url: URL): SwitchboardError {
  const code = (error as NodeJS.ErrnoException).code;
  const what = code === undefined ? error.message : `${code}${error.message ? ` (${error.message})` : ''}`;
  return new SwitchboardError('server_unavailable', `${url.origin} cannot be reached: ${what}`, {
    cause: error,
  });
}

export function statusError(status: number, url: URL, body: string): SwitchboardError {
  const hint = status === 401 || status === 403 ? ' Check the configured headers.' : '';
  const said = body === '' ? '' : ` It said: ${body.slice(0, 300)}`;
  return new SwitchboardError(
    'server_unavailable',
    `${url.origin}${url.pathname} answered HTTP ${status}.${hint}${said}`,
    {
      data: { status },
    },
  );
}
