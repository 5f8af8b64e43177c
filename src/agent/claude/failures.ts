import { SwitchboardError } from '../../errors.ts';
import { isObject } from '../../protocol/objects.ts';

/** Types of errors that may pass by themselves, where an error comes in the middle of a stream and has no status. */
const passing = new Set<unknown>(['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error']);

/** What is told of an error by its looks: the SDK may be there several times, and each has classes of its own. */
interface Told {
  message: string;
  /** It is one of the API, or there was no way to it. */
  isApiError: boolean;
  isUnreached: boolean;
  status: number | undefined;
  type: string | undefined;
  /** In the words of the API. */
  apiMessage: string | undefined;
}

/** What the SDK throws, in words that say what to do. The SDK has tried again by then where that could have helped. */
export function claudeFailure(error: unknown, baseUrl: string | undefined): SwitchboardError {
  const { message, isApiError, isUnreached, status, type, apiMessage } = toldBy(error);
  const fail = (code: 'model_unavailable' | 'model_refused' | 'invalid_config', what: string) =>
    new SwitchboardError(code, what, { cause: error });
  if (isUnreached) {
    const place = baseUrl === undefined ? '' : ` at ${baseUrl}`;
    return fail('model_unavailable', `Claude's API cannot be reached${place}: ${reasonOf(error as Error)}`);
  }
  if (isApiError) {
    const what =
      apiMessage === undefined ? message : `${apiMessage} (${[status, type].filter(Boolean).join(' ')})`;
    const isPassing = status === undefined ? passing.has(type) : status === 429 || status >= 500;
    if (isPassing) return fail('model_unavailable', `Claude's API failed: ${what}`);
    const advice = status === 401 || status === 403 ? '. Check the API key' : '';
    return fail('model_refused', `Claude's API does not take the request: ${what}${advice}`);
  }
  if (message.includes('authentication method')) {
    return fail('invalid_config', 'There is no key for Claude: set ANTHROPIC_API_KEY, or give `apiKey`.');
  }
  return fail('model_unavailable', `The answer of Claude's API broke off: ${message}`);
}

/** Whether an answer had begun and then failed in a way that may pass. That, the SDK does not try again. */
export function isBrokenOff(error: unknown): boolean {
  const { isUnreached, status } = toldBy(error);
  return !isUnreached && status === undefined && claudeFailure(error, undefined).code === 'model_unavailable';
}

/** The tool that the API does not take, by its place among those that it was offered, and why. */
export function refusedTool(error: unknown): { index: number; why: string } | undefined {
  const { status, apiMessage, message } = toldBy(error);
  const found = /(?<![\w.])tools\.(\d{1,6})[.:]/.exec(apiMessage ?? message);
  return status === 400 && found !== null
    ? { index: Number(found[1]), why: apiMessage ?? message }
    : undefined;
}

function toldBy(error: unknown): Told {
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
