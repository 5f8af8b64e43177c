import { SwitchboardError } from '../errors.ts';

/** SQLSTATE classes: connection, resources, operator intervention, system errors, and a read-only standby. */
const unavailableCodes = /^(08|53|57(?!014)|58|25006$)/;
/** A cancelled statement, nearly always by its timeout: the database is available. */
const CANCELLED = '57014';
const systemCodes = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN', 'EPIPE', 'ETIMEDOUT'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'EACCES'],
]);
/** `pg` sets no code on these. */
const lossMessages =
  /Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|not queryable|Client was closed|Cannot use a pool after/;
const UNIQUE_VIOLATION = '23505';
/** For text that PostgreSQL cannot store: NUL, half of a surrogate pair. */
const badTextCodes = new Set(['22P05', '22P02', '22021']);

/** Whether the database, not the query, caused the error. */
export function isUnavailable(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  if (code !== undefined && (unavailableCodes.test(code) || systemCodes.has(code))) return true;
  return lossMessages.test(message ?? '');
}

export function unavailable(label: string, reason: string, cause?: unknown): SwitchboardError {
  return new SwitchboardError(
    'database_unavailable',
    `The database at ${label} cannot be reached: ${reason}. Changes fail until it is back; Switchboard reconnects automatically.`,
    { cause },
  );
}

/** Known errors become SwitchboardErrors; others are returned unchanged. */
export function translate(error: unknown, label: string): unknown {
  if (error instanceof SwitchboardError) return error;
  if (isUnavailable(error)) return unavailable(label, reasonOf(error), error);
  if (codeOf(error) === CANCELLED) {
    return new SwitchboardError(
      'internal',
      `The database at ${label} did not finish in time: ${reasonOf(error)}.`,
      { cause: error },
    );
  }
  if (badTextCodes.has(codeOf(error) ?? '')) {
    return new SwitchboardError(
      'invalid_input',
      `It contains a character that the database cannot store: ${reasonOf(error)}.`,
      { cause: error },
    );
  }
  return error;
}

export function violates(error: unknown, constraint: string): boolean {
  return codeOf(error) === UNIQUE_VIOLATION && (error as { constraint?: string }).constraint === constraint;
}

export function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code;
}

/** Node gives an AggregateError of several addresses no message. */
export function reasonOf(error: unknown): string {
  const { message, code, errors } = error as Error & { code?: string; errors?: Error[] };
  return (message || errors?.map((each) => each.message).join(', ') || code || String(error)).replace(
    /\.$/,
    '',
  );
}
