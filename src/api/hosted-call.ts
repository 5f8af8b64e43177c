import { SwitchboardError } from '../errors.ts';
import { JsonScanner, JsonSyntaxError, type Span } from '../protocol/json-scanner.ts';
import { type HostedCall, hostedCall } from './hosted-input.ts';
import { parseObject } from './http/body.ts';
import { check, invalidInput } from './http/check.ts';

/** Keeps the text of `params`, because JSON.parse would round large numbers. */
export function readCall(text: string): HostedCall {
  const { method, params, timeout_ms } = check(hostedCall, parseObject(text));
  return {
    method,
    paramsText: params === undefined ? undefined : textOf('params', text),
    timeoutMs: timeout_ms,
  };
}

/** The source text of a top-level value. As in JSON.parse, the last duplicate key counts. */
function textOf(wanted: string, text: string): string {
  const bytes = Buffer.from(text);
  const scanner = new JsonScanner(bytes);
  let found: Span | undefined;
  try {
    scanner.object((keyStart, keyEnd) => {
      const key = JSON.parse(bytes.toString('utf8', keyStart - 1, keyEnd + 1)) as string;
      const value = scanner.span();
      if (key === wanted) found = value;
    });
  } catch (error) {
    // The text is valid JSON, so it is nested too deeply.
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw invalidInput([{ path: [wanted], message: 'is nested too deep' }]);
  }
  return bytes.toString('utf8', found!.start, found!.end);
}

/** Switchboard performs the handshake, and a notification has no response. */
export function rejectReserved(method: string): void {
  if (method !== 'initialize' && !method.startsWith('notifications/')) return;
  const why =
    method === 'initialize' ? 'Switchboard has done the handshake already' : 'notifications get no response';
  throw new SwitchboardError('invalid_input', `"${method}" cannot be called: ${why}.`, {
    data: { problems: [{ path: 'method', message: why }] },
  });
}
