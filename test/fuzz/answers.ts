import { errorTable } from '../../src/errors.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';
import { canariesIn } from './generators/random.ts';
import type { Exchange, WireAnswer } from './wire.ts';

/** A project secret that must never appear in a response. */
export const SECRET = 'never-to-be-seen-5f1c';

/** The documented statuses: of the error table, of success, and of Node's own HTTP errors. */
const statuses = new Set([
  ...[200, 201, 202, 204, 400, 408, 413, 417, 431],
  ...Object.values(errorTable).map(({ http }) => http),
]);
statuses.delete(errorTable.internal.http);

/** Text that only an uncaught exception would produce. */
const internals =
  /\bat .{0,200}\.(?:ts|js|mjs):\d+|node:internal|\/(?:src|dist|node_modules)\/|Cannot read prop|is not a function|is not iterable|undefined \(reading|\[object Object\]|ECONN|ENOENT: /;

/** `rpc`: JSON-RPC of Switchboard; `relayed`: anything that a server responds; `api`: JSON with data of all cases. */
type Form = 'rpc' | 'relayed' | 'api';

/** The cases whose data the client may see. */
type Own = ReadonlySet<number>;

/** The first problem with the responses to a case. */
export function wrongIn(
  { answers, malformed, isClosed }: Exchange,
  own: Own,
  ids: readonly (string[] | undefined)[],
  form: Form = 'rpc',
): string | undefined {
  if (malformed !== undefined) return `malformed HTTP: ${malformed}`;
  for (const [number, answer] of answers.entries()) {
    const wrong = wrongWith(answer, form === 'api' ? undefined : own) ?? wrongForm(answer, form, ids[number]);
    if (wrong !== undefined) return `${wrong}; HTTP ${answer.status} ${shown(answer.body)}`;
  }
  if (!isClosed && answers.length < ids.length) return `${answers.length} answers to ${ids.length} requests`;
  return undefined;
}

/** The checks for every response. */
function wrongWith({ status, body }: WireAnswer, own: Own | undefined): string | undefined {
  if (status >= 500 && !statuses.has(status)) return 'an internal error';
  if (!statuses.has(status)) return 'a status that is not documented';
  const text = body.toString();
  if (text.includes(SECRET)) return 'a secret';
  if (own !== undefined) {
    const stranger = canariesIn(text).find((canary) => !own.has(canary));
    if (stranger !== undefined) return `data of case ${stranger}`;
  }
  if (status >= 400 && internals.test(text)) return 'internals';
  // Lists of the API repeat what agents reported about their runs.
  const isRepeated = own === undefined && status < 400;
  if (!isRepeated && text.includes('"code":"internal"')) return 'an internal error';
  return undefined;
}

/** Each request id must have exactly one response. */
function wrongForm(answer: WireAnswer, form: Form, ids: string[] | undefined): string | undefined {
  if (form === 'relayed') return undefined;
  const { headers, body, isWhole } = answer;
  const isJson = headers['content-type']?.startsWith('application/json') ?? false;
  if (isJson && isWhole && body.length > 0 && parsed(body.toString()) === undefined) return 'no JSON';
  if (form === 'api') return undefined;
  const messages = messagesIn(answer);
  for (const message of messages) {
    const wrong = wrongMessage(message);
    if (wrong !== undefined) return wrong;
  }
  if (ids === undefined || answer.status !== 200 || !answer.isWhole) return undefined;
  const answered = messages.filter(({ method }) => method === undefined);
  const wanted = ids.map((id) => JSON.stringify(JSON.parse(id)));
  const got = answered.map(({ id }) => JSON.stringify(id));
  if (wanted.join() !== got.join()) return `answers to ${got.join(', ')} where ${wanted.join(', ')} asked`;
  return undefined;
}

/** All JSON-RPC messages in a response of the MCP endpoint. */
export function messagesIn({ headers, body, status }: WireAnswer): RpcMessage[] {
  const type = headers['content-type'] ?? '';
  const text = body.toString();
  if (type.startsWith('text/event-stream')) {
    return eventsIn(text).flatMap((data) => (parsed(data) as RpcMessage | undefined) ?? []);
  }
  const value = type.startsWith('application/json') ? parsed(text) : undefined;
  if (typeof value !== 'object' || value === null || (status === 200 && 'status' in value)) return [];
  return (Array.isArray(value) ? value : [value]) as RpcMessage[];
}

/** The data of all complete events, parsed as in browsers. */
function eventsIn(text: string): string[] {
  const blocks = text.split(/(?:\r\n|\n|\r)(?:\r\n|\n|\r)/).slice(0, -1);
  return blocks
    .map((block) =>
      block
        .split(/\r\n|\n|\r/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice('data:'.length).replace(/^ /, ''))
        .join('\n'),
    )
    .filter((data) => data !== '');
}

function wrongMessage(message: RpcMessage & { jsonrpc?: unknown }): string | undefined {
  const { jsonrpc, method, result, error, id } = message;
  // Errors of the API have their own format.
  if (jsonrpc === undefined && error !== undefined) return undefined;
  if (jsonrpc !== '2.0') return 'no JSON-RPC';
  if (method !== undefined) return typeof method === 'string' ? undefined : 'a method that is no text';
  if ((result === undefined) === (error === undefined)) return 'neither a result nor an error, or both';
  if (id === undefined && error === undefined) return 'a result without an id';
  if (error !== undefined && (!Number.isInteger(error.code) || typeof error.message !== 'string'))
    return 'an odd error';
  return undefined;
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function shown(bytes: Buffer, most = 300): string {
  const text = JSON.stringify(bytes.toString('latin1', 0, most));
  return bytes.length > most ? `${text} … (${bytes.length} bytes)` : text;
}

/** A short outcome to count, which shows how far cases get. */
export function outcomeOf({ answers, isClosed }: Exchange): string {
  const [answer] = answers;
  if (answer === undefined) return isClosed ? 'closed' : 'left';
  const final = messagesIn(answer).find(({ method }) => method === undefined);
  if (answer.status !== 200 || final === undefined) return String(answer.status);
  return final.error === undefined ? 'result' : `error ${final.error?.data?.code ?? final.error?.code}`;
}
