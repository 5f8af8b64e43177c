import { SwitchboardError } from '../errors.ts';
import { JsonScanner, JsonSyntaxError, type Span } from '../protocol/json-scanner.ts';
import { type HostedCall, hostedCall } from './hosted-input.ts';
import { parseObject } from './http/body.ts';
import { check } from './http/check.ts';
import { invalidInput } from './http/problems.ts';

/** A call as it was asked for. What it is called with stays as it was written, to the last digit. */
export function readCall(text: string): HostedCall {
  const { method, params, timeout_ms } = check(hostedCall, parseObject(text));
  return {
    method,
    paramsText: params === undefined ? undefined : textOf('params', text),
    timeoutMs: timeout_ms,
  };
}

/** The value of a key of the outermost object. Where it is there twice the last one counts, as for every parser. */
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
    // The text is JSON, so it is only nested too deep.
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw invalidInput([{ path: [wanted], message: 'is nested too deep' }]);
  }
  return bytes.toString('utf8', found!.start, found!.end);
}

/** Switchboard does the handshake, and a notification gets no response. */
export function rejectReserved(method: string): void {
  if (method !== 'initialize' && !method.startsWith('notifications/')) return;
  const why =
    method === 'initialize' ? 'Switchboard has done the handshake already' : 'notifications get no response';
  throw new SwitchboardError('invalid_input', `"${method}" cannot be called: ${why}.`, {
    data: { problems: [{ path: 'method', message: why }] },
  });
}
