/** Validates the responses of a variant. */
import { type Answer, headerOf } from './http-connection.ts';
import type { Target } from './requests.ts';

export class WrongAnswer extends Error {
  constructor(target: Target, problem: string, answer: Answer) {
    super(
      `${target.variant}: ${problem} (status ${answer.status}, ${answer.bodyBytes} bytes: ${answer.start.slice(0, 200)})`,
    );
  }
}

/** The result in a complete response, sent as JSON or as an event stream. */
export function resultOf(target: Target, answer: Answer, id: number): Record<string, unknown> {
  if (answer.status !== 200 || answer.body === undefined)
    throw new WrongAnswer(target, 'a request failed', answer);
  const isStream = headerOf(answer.head, 'content-type')?.startsWith('text/event-stream') ?? false;
  const json = isStream ? lastEventData(answer.body) : answer.body;
  const message = parseObject(json);
  if (message === undefined) throw new WrongAnswer(target, 'the response is not a JSON object', answer);
  if (target.protocol !== 'mcp-hub' && message.id !== id)
    throw new WrongAnswer(target, `expected id ${id}`, answer);
  const { result } = message;
  if (!isObject(result)) throw new WrongAnswer(target, 'there is no result', answer);
  // A gateway between two eras must use the client's era.
  const resultType = target.protocol === 'modern' ? 'complete' : undefined;
  if (result.resultType !== resultType)
    throw new WrongAnswer(target, 'the result is of the other era', answer);
  return result;
}

export function hasId(text: string, id: number): boolean {
  const found = text.indexOf(`"id":${id}`);
  const after = text[found + 5 + String(id).length];
  return found >= 0 && (after === ',' || after === '}');
}

function lastEventData(stream: string): string {
  const lines = stream.split(/\r?\n/).filter((line) => line.startsWith('data:') && line.length > 6);
  return lines.at(-1)?.slice(5) ?? '';
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
