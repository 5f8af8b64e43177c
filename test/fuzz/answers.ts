import { errorTable } from '../../src/errors.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';
import { canariesIn } from './generators/random.ts';
import type { Exchange, WireAnswer } from './wire.ts';

/** What Switchboard keeps for itself. It stands in the secrets of a project, and must never come out. */
export const SECRET = 'never-to-be-seen-5f1c';

/** Statuses that are documented: those of the table, of success, and of HTTP itself (Node's own refusals). */
const statuses = new Set([
  ...[200, 201, 202, 204, 400, 408, 413, 417, 431],
  ...Object.values(errorTable).map(({ http }) => http),
]);
statuses.delete(errorTable.internal.http);

/** What only an exception that nobody caught would say. */
const internals =
  /\bat .{0,200}\.(?:ts|js|mjs):\d+|node:internal|\/(?:src|dist|node_modules)\/|Cannot read prop|is not a function|is not iterable|undefined \(reading|\[object Object\]|ECONN|ENOENT: /;

/**
 * Whose the form of the answers is: `rpc`: ours, JSON-RPC; `relayed`: that of a server that may answer anything, because it is
 * passed on as it is; `api`: JSON, made of what all cases have written.
 */
type Form = 'rpc' | 'relayed' | 'api';

/** The cases whose data the client may see. */
type Own = ReadonlySet<number>;

/** What is wrong with the answers to a case; undefined where nothing is. */
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

/** What must hold for every answer, whatever was asked. */
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
  // What the API lists repeats what agents said of their own runs.
  const isRepeated = own === undefined && status < 400;
  if (!isRepeated && text.includes('"code":"internal"')) return 'an internal error';
  return undefined;
}

/** The answer to requests with these ids: each has exactly one. */
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

/** All messages of JSON-RPC in an answer, of the MCP endpoint. */
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

/** The data of all whole events, as a browser reads them. */
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
  // The API has errors of its own form.
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

/** What came of a case in a word or two, so that it can be counted how far cases come. */
export function outcomeOf({ answers, isClosed }: Exchange): string {
  const [answer] = answers;
  if (answer === undefined) return isClosed ? 'closed' : 'left';
  const final = messagesIn(answer).find(({ method }) => method === undefined);
  if (answer.status !== 200 || final === undefined) return String(answer.status);
  return final.error === undefined ? 'result' : `error ${final.error?.data?.code ?? final.error?.code}`;
}
