import { SwitchboardError } from '../errors.ts';
import { bytesAt, type Message } from '../protocol/envelope.ts';
import type { Session } from './session.ts';

/** From the most talkative to the most silent. */
const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

export function readLevel(message: Message): string {
  const { level } = paramsOf(message);
  if (typeof level !== 'string' || !levels.includes(level)) {
    throw new SwitchboardError('invalid_params', `params.level must be one of ${levels.join(', ')}.`);
  }
  return level;
}

/** The level that gives every client what it wants; undefined where no client has said. */
export function mostTalkative(sessions: Iterable<Session>): string | undefined {
  let lowest = levels.length;
  for (const { logLevel } of sessions) {
    if (logLevel !== undefined) lowest = Math.min(lowest, levels.indexOf(logLevel));
  }
  return levels[lowest];
}

/** Whether a client that asked for this level wants to see the log message. */
export function isWanted(message: Message, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  const { level } = paramsOf(message);
  return levels.indexOf(String(level)) >= levels.indexOf(wanted);
}

function paramsOf({ bytes, params }: Message): Record<string, unknown> {
  return params === undefined
    ? {}
    : (JSON.parse(bytesAt(bytes, params).toString()) as Record<string, unknown>);
}
