import { SwitchboardError } from '../errors.ts';
import type { Span } from './json-scanner.ts';

/** Ids, tokens and names are turned into values, kept, compared and repeated in answers: they have to be short. */
export const MAX_ID_BYTES = 1_024;
/** Where a gateway stands before a gateway, each puts the other's id into its own. */
export const MAX_TASK_ID_BYTES = 8 * 1024;
/** URIs of resources can hold what they are about; 64 KB of one still fits into a header, as base64 too. */
export const MAX_URI_BYTES = 64 * 1024;
/** What a server's own URI may have, so that it stays readable with the server's name in front. */
export const MAX_OWN_URI_BYTES = MAX_URI_BYTES - MAX_ID_BYTES;

/** Refuses what stands there where it is longer than that. */
export function checkLength(span: Span | undefined, maxBytes: number, what: string): void {
  if (span !== undefined && span.end - span.start > maxBytes)
    throw new SwitchboardError('invalid_request', `The ${what} is longer than ${maxBytes} bytes.`);
}
