import { SwitchboardError } from '../../errors.ts';
import type { Sdk } from './sdk.ts';

/** Types of errors that may pass by themselves, where an error comes in the middle of a stream and has no status. */
const passing = new Set<unknown>(['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error']);

/** What the SDK throws, in words that say what to do. The SDK has tried again by then where that could have helped. */
export function claudeFailure({ default: sdk }: Sdk, error: unknown, baseUrl: string): SwitchboardError {
  const message = error instanceof Error ? error.message : String(error);
  const fail = (code: 'model_unavailable' | 'model_refused' | 'invalid_config', what: string) =>
    new SwitchboardError(code, what, { cause: error });
  if (error instanceof sdk.APIConnectionError) {
    return fail('model_unavailable', `Claude's API cannot be reached at ${baseUrl}: ${reasonOf(error)}`);
  }
  if (error instanceof sdk.APIError) {
    const { status, type, apiMessage } = error;
    const what =
      apiMessage === null ? message : `${apiMessage} (${[status, type].filter(Boolean).join(' ')})`;
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

function reasonOf(error: Error): string {
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.cause instanceof Error ? cause.cause.message : cause.message;
}
