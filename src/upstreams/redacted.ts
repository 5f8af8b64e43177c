import { QuotingError } from '../channels/quoting-error.ts';
import { SwitchboardError } from '../errors.ts';

/** The same error without secrets in its words. What it was caused by is left behind with them. */
export function redacted(error: SwitchboardError, redact: (text: string) => string): SwitchboardError {
  if (error instanceof QuotingError) return error.masked(redact);
  const message = redact(error.message);
  if (message === error.message) return error;
  return new SwitchboardError(error.code, message, { data: error.data });
}
