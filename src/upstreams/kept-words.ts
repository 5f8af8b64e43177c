import { asObject } from '../protocol/objects.ts';
import type { ServerFacts } from './handshake.ts';

/** Every client is told all of them, and every model reads them. */
const LONGEST_INSTRUCTIONS = 64 * 1024;
/** There may be pictures in it. */
const LARGEST_INFO = 64 * 1024;

/** What is kept of what a server says of itself, and what is too large for that. */
export function kept(
  instructions: unknown,
  info: unknown,
): Pick<ServerFacts, 'instructions' | 'serverInfo' | 'problems'> {
  const text = typeof instructions === 'string' ? instructions : undefined;
  const isLong = text !== undefined && text.length > LONGEST_INSTRUCTIONS;
  const isInfo = typeof info === 'object' && info !== null;
  const isLarge = isInfo && JSON.stringify(info).length > LARGEST_INFO;
  return {
    instructions: isLong ? `${Buffer.from(text.slice(0, LONGEST_INSTRUCTIONS)).toString()} …` : text,
    serverInfo: isInfo && !isLarge ? asObject(info) : undefined,
    problems: [
      ...(isLong ? [`its instructions are cut at ${LONGEST_INSTRUCTIONS} characters`] : []),
      ...(isLarge ? [`its serverInfo is left out: larger than ${LARGEST_INFO} characters`] : []),
    ],
  };
}
