import { INSTANCES_KEY } from '../protocol/instances.ts';
import type { Scope } from './scope.ts';

type Settings = Record<string, unknown>;

/** Shorter excerpts of a server's instructions are useless. */
const LEAST_BYTES = 100;
const CUT = ' …';
const BETWEEN = '\n\n';

/** Independent of what the servers offer now, because they come and go. */
export const offeredCapabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

/** The ids of this Switchboard and of all behind it, so that those in front of it can detect loops. */
export function instancesMeta(scope: Scope, instance: string): Record<typeof INSTANCES_KEY, string[]> {
  const behind = scope.servers().flatMap(({ instances }) => instances);
  return { [INSTANCES_KEY]: [...new Set([instance, ...behind])] };
}

export function mergedExtensions(scope: Scope): { extensions?: Settings } {
  let merged: Settings = {};
  for (const { extensions } of scope.servers()) {
    if (isSettings(extensions)) merged = merge(merged, extensions);
  }
  return Object.keys(merged).length === 0 ? {} : { extensions: merged };
}

/** Merges objects and lists; for other values the first one wins. */
function merge(one: Settings, other: Settings): Settings {
  const merged = { ...one };
  for (const [key, value] of Object.entries(other))
    merged[key] = mergeValues(Object.hasOwn(merged, key) ? merged[key] : undefined, value);
  return merged;
}

function mergeValues(one: unknown, other: unknown): unknown {
  if (one === undefined) return other;
  if (isSettings(one) && isSettings(other)) return merge(one, other);
  if (Array.isArray(one) && Array.isArray(other)) return [...new Set([...one, ...other])];
  return one;
}

function isSettings(value: unknown): value is Settings {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  // A number that is kept as raw text is an object too.
  return !(Object.getPrototypeOf(value) === null && 'rawJSON' in value);
}

export function instructionsOf(scope: Scope): { instructions?: string } {
  const all = scope.servers().flatMap((server) => {
    const { instructions = '' } = server;
    return instructions === '' ? [] : [`## ${scope.qualifierOf(server)}\n${instructions}`];
  });
  const shown = all.slice(0, Math.floor(scope.maxInstructionsBytes / LEAST_BYTES));
  const shares = sharesOf(
    shown.map((text) => Buffer.byteLength(text)),
    scope.maxInstructionsBytes - BETWEEN.length * Math.max(0, shown.length - 1),
  );
  const instructions = shown.map((text, index) => cut(text, shares[index]!)).join(BETWEEN);
  return instructions === '' ? {} : { instructions };
}

/** Divides the limit: short texts leave their rest to the long ones. */
export function sharesOf(lengths: readonly number[], limit: number): number[] {
  const shares = [...lengths];
  let left = limit;
  const shortestFirst = lengths
    .map((_, index) => index)
    .sort((one, other) => lengths[one]! - lengths[other]!);
  shortestFirst.forEach((index, done) => {
    shares[index] = Math.min(lengths[index]!, Math.floor(left / (lengths.length - done)));
    left -= shares[index]!;
  });
  return shares;
}

function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes - Buffer.byteLength(CUT);
  // Never inside a character.
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end) + CUT;
}
