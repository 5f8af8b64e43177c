import { asObject } from '../json.ts';
import type { Era, modernVersion, ProtocolVersion } from '../protocol/versions.ts';

/** What a server says of itself. */
export interface ServerFacts {
  version: ProtocolVersion | typeof modernVersion;
  era: Era;
  capabilities: Record<string, unknown>;
  instructions: string | undefined;
  serverInfo: Record<string, unknown> | undefined;
  /** What of that is cut or left out, because it is too large. */
  problems: readonly string[];
  /** Where it is a Switchboard: the ids of all that are on the way to what it offers. */
  instances: readonly string[];
}

/** Nothing that a server says of itself is believed for longer. */
const MAX_TTL_MS = 24 * 3_600_000;

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

/** How long an answer holds; 0 where the server does not say. */
export function ttlOf({ ttlMs }: Record<string, unknown>): number {
  return typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(Math.floor(ttlMs), MAX_TTL_MS) : 0;
}
