import { SwitchboardError } from '../../errors.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { headerProblem, textOfHeader } from '../../protocol/header-values.ts';
import { bytesAt, type Message } from '../../protocol/message.ts';
import { parameterHeaderProblem } from '../../protocol/parameter-headers.ts';
import { nameKeyOf } from '../../protocol/request-lines.ts';
import type { Group } from '../../upstreams/group.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A proxy may route by the headers, so they must agree with the message. */
export function checkHeaders(headers: Headers, version: string, message: Message): void {
  expect(headers, 'mcp-protocol-version', version);
  expect(headers, 'mcp-method', message.method);
  const key = nameKeyOf(message.method);
  const named = key && message[key]?.value;
  if (named !== undefined) expect(headers, 'mcp-name', named);
}

/** Like `checkHeaders`, for tools whose arguments are repeated in headers. */
export function checkParameters(
  headers: Headers,
  { bytes, method, params }: Message,
  group: Group,
  own: string,
): void {
  if (method !== 'tools/call' || params === undefined) return;
  const declared = group.parameterHeaders(own);
  if (declared.length === 0) return;
  const { arguments: args } = parseBounded(bytesAt(bytes, params).toString()) as { arguments?: unknown };
  // Requests from stdin have no headers, and the bridge does not know which arguments to repeat.
  const mayLack = headers['x-switchboard-channel'] === 'stdio';
  const problem = parameterHeaderProblem(declared, args, headers, mayLack);
  if (problem !== undefined) throw mismatch(problem);
}

function expect(headers: Headers, name: string, wanted: string): void {
  const sent = headers[name];
  if (sent === wanted && !wanted.startsWith('=?')) return;
  if (sent === undefined) throw mismatch(`the header ${name} is missing`);
  const decoded = textOfHeader(String(sent));
  if (decoded === undefined) throw mismatch(`the header ${name} ${headerProblem(String(sent))}`);
  if (decoded !== wanted)
    throw mismatch(`the header ${name} says "${start(decoded)}", the message "${start(wanted)}"`);
}

function start(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

export function mismatch(what: string): SwitchboardError {
  return new SwitchboardError('header_mismatch', `Headers and message disagree: ${what}.`);
}
