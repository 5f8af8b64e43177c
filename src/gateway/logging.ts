import { SwitchboardError } from '../errors.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import { bytesAt, type Message } from '../protocol/envelope.ts';
import { inWords } from '../protocol/objects.ts';

/** From the most talkative to the most silent. */
export const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

export function readLevel(message: Message): string {
  const { level } = paramsOf(message);
  if (!isLevel(level)) {
    throw new SwitchboardError('invalid_params', `params.level must be one of ${levels.join(', ')}.`);
  }
  return level;
}

export function isLevel(level: unknown): level is string {
  return typeof level === 'string' && levels.includes(level);
}

/** The level that gives everybody what they want; undefined where nobody has said. */
export function mostTalkative(wanted: Iterable<string | undefined>): string | undefined {
  let lowest = levels.length;
  for (const logLevel of wanted) {
    if (logLevel !== undefined) lowest = Math.min(lowest, levels.indexOf(logLevel));
  }
  return levels[lowest];
}

/** Whether a client that asked for this level wants to see the log message. */
export function isWanted(message: Message, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  const { level } = paramsOf(message);
  return levels.indexOf(inWords(level)) >= levels.indexOf(wanted);
}

function paramsOf({ bytes, params }: Message): Record<string, unknown> {
  return params === undefined
    ? {}
    : (parseBounded(bytesAt(bytes, params).toString()) as Record<string, unknown>);
}
