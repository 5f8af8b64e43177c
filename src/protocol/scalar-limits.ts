import { SwitchboardError } from '../errors.ts';
import type { Span } from './json-scanner.ts';

/** For ids, tokens and names, which are decoded, stored, compared and repeated in responses. */
export const MAX_ID_BYTES = 1_024;
/** Chained gateways nest each other's task ids. */
export const MAX_TASK_ID_BYTES = 8 * 1024;
/** URIs may contain data; this still fits into a header, even in base64. */
export const MAX_URI_BYTES = 64 * 1024;
/** For a server's own URI, so that it stays valid with the prefix. */
export const MAX_OWN_URI_BYTES = MAX_URI_BYTES - MAX_ID_BYTES;

export function checkLength(span: Span | undefined, maxBytes: number, what: string): void {
  if (span !== undefined && span.end - span.start > maxBytes)
    throw new SwitchboardError('invalid_request', `The ${what} is longer than ${maxBytes} bytes.`);
}
