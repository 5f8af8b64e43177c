import { asObject } from '../json.ts';
import type { Era, modernVersion, ProtocolVersion } from '../protocol/versions.ts';

/** What a server sends about itself. */
export interface ServerFacts {
  version: ProtocolVersion | typeof modernVersion;
  era: Era;
  capabilities: Record<string, unknown>;
  instructions: string | undefined;
  serverInfo: Record<string, unknown> | undefined;
  /** What was cut or left out because of its size. */
  problems: readonly string[];
  /** If it is a Switchboard: the ids of all Switchboards behind it, including its own. */
  instances: readonly string[];
}

/** Longer TTLs are cut to this. */
const MAX_TTL_MS = 24 * 3_600_000;

/** All clients and models get them. */
const LONGEST_INSTRUCTIONS = 64 * 1024;
/** It may contain icons. */
const LARGEST_INFO = 64 * 1024;

/** Applies the size limits, and describes what they cut. */
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

/** The TTL of a response; 0 if the server gives none. */
export function ttlOf({ ttlMs }: Record<string, unknown>): number {
  return typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(Math.floor(ttlMs), MAX_TTL_MS) : 0;
}
