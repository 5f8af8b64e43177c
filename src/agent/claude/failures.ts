import { SwitchboardError } from '../../errors.ts';
import { isObject } from '../../json.ts';

/** Transient error types, for errors in a stream, which have no status. */
const transient = new Set<unknown>(['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error']);

/** Read from the fields of an error, because `instanceof` fails if the SDK is installed twice. */
interface ErrorFacts {
  message: string;
  /** Also true for a failed connection. */
  isApiError: boolean;
  isUnreached: boolean;
  status: number | undefined;
  type: string | undefined;
  apiMessage: string | undefined;
}

/** Explains an error of the SDK, which has already retried if that could help. */
export function claudeFailure(error: unknown, baseUrl: string | undefined): SwitchboardError {
  const { message, isApiError, isUnreached, status, type, apiMessage } = factsOf(error);
  const fail = (code: 'model_unavailable' | 'model_refused' | 'invalid_config', what: string) =>
    new SwitchboardError(code, what, { cause: error });
  if (isUnreached) {
    const place = baseUrl === undefined ? '' : ` at ${baseUrl}`;
    return fail('model_unavailable', `Claude's API cannot be reached${place}: ${reasonOf(error as Error)}`);
  }
  if (isApiError) {
    const what =
      apiMessage === undefined ? message : `${apiMessage} (${[status, type].filter(Boolean).join(' ')})`;
    const isTransient = status === undefined ? transient.has(type) : status === 429 || status >= 500;
    if (isTransient) return fail('model_unavailable', `Claude's API failed: ${what}`);
    const advice = status === 401 || status === 403 ? '. Check the API key' : '';
    return fail('model_refused', `Claude's API rejected the request: ${what}${advice}`);
  }
  if (message.includes('authentication method')) {
    return fail('invalid_config', 'The API key for Claude is missing: set ANTHROPIC_API_KEY or `apiKey`.');
  }
  return fail('model_unavailable', `The response of Claude's API was interrupted: ${message}`);
}

/** Whether a response was interrupted by a transient error, which the SDK does not retry. */
export function isInterrupted(error: unknown): boolean {
  const { isUnreached, status } = factsOf(error);
  return !isUnreached && status === undefined && claudeFailure(error, undefined).code === 'model_unavailable';
}

/** The index of the tool that the API rejected, and why. */
export function rejectedTool(error: unknown): { index: number; why: string } | undefined {
  const { status, apiMessage, message } = factsOf(error);
  const found = /(?<![\w.])tools\.(\d{1,6})[.:]/.exec(apiMessage ?? message);
  return status === 400 && found !== null
    ? { index: Number(found[1]), why: apiMessage ?? message }
    : undefined;
}

function factsOf(error: unknown): ErrorFacts {
  const message = error instanceof Error ? error.message : String(error);
  const facts: Record<string, unknown> = error instanceof Error ? { ...error } : {};
  const isApiError = 'status' in facts && 'headers' in facts;
  const body = isObject(facts.error) ? facts.error : {};
  const inner = isObject(body.error) ? body.error : {};
  return {
    message,
    isApiError,
    isUnreached: isApiError && facts.status === undefined && facts.headers === undefined,
    status: typeof facts.status === 'number' ? facts.status : undefined,
    type: firstText(facts.type, inner.type),
    apiMessage: firstText(facts.apiMessage, inner.message),
  };
}

function firstText(...values: unknown[]): string | undefined {
  return values.find((value) => typeof value === 'string');
}

function reasonOf(error: Error): string {
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.cause instanceof Error ? cause.cause.message : cause.message;
}
