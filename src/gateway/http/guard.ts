import type { IncomingMessage } from 'node:http';
import { SwitchboardError } from '../../errors.ts';

const loopbackHost = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;
const loopbackOrigin = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

/**
 * A web page must not reach us through the user's browser: neither directly (Origin) nor by making its own name
 * point at this machine (Host).
 */
export function checkOrigin({ headers: { host, origin } }: IncomingMessage): void {
  if (host === undefined || !loopbackHost.test(host)) {
    throw new SwitchboardError(
      'forbidden_origin',
      `The Host header "${host ?? ''}" does not name this machine.`,
    );
  }
  if (origin !== undefined && !loopbackOrigin.test(origin)) {
    throw new SwitchboardError('forbidden_origin', `The Origin "${origin}" is not allowed.`);
  }
}
