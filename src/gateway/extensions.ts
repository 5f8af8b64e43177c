import type { Scope } from './scope.ts';

type Settings = Record<string, unknown>;

/** The extensions that servers have, as one: what several say of the same extension is put together. */
export function mergedExtensions(scope: Scope): { extensions?: Settings } {
  let merged: Settings = {};
  for (const { extensions } of scope.servers()) {
    if (isSettings(extensions)) merged = merge(merged, extensions);
  }
  return Object.keys(merged).length === 0 ? {} : { extensions: merged };
}

/** Objects become one, lists hold what is in either; of two other values the first one stays. */
function merge(one: Settings, other: Settings): Settings {
  const merged = { ...one };
  for (const [key, value] of Object.entries(other))
    merged[key] = together(Object.hasOwn(merged, key) ? merged[key] : undefined, value);
  return merged;
}

function together(one: unknown, other: unknown): unknown {
  if (one === undefined) return other;
  if (isSettings(one) && isSettings(other)) return merge(one, other);
  if (Array.isArray(one) && Array.isArray(other)) return [...new Set([...one, ...other])];
  return one;
}

/** A number that is kept as its text. */
function isNumber(value: object): boolean {
  return Object.getPrototypeOf(value) === null && 'rawJSON' in value;
}

function isSettings(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumber(value);
}
