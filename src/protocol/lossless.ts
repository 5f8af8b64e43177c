import { checkValues, MAX_VALUES } from './bounded-parse.ts';

interface RawJson {
  rawJSON: string;
}

type SourceReviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;

// The types of TypeScript's library do not have these two of ECMAScript's yet.
const json = JSON as unknown as {
  parse(text: string, reviver?: SourceReviver): unknown;
  rawJSON(text: string): RawJson;
};

/** Long numbers may not fit a double, and ones with an exponent are written in many ways. */
const longOrExponent = /\d[\d.]{15}|\d[eE]/;
/** Short ones all fit; these are the ones that come back spelled otherwise: `-0`, `1.0`, `0.0000001`. */
const oddlySpelled = /(?:^|[[:,])\s*(?:-0(?![\d.])|-?\d+\.\d*0(?!\d)|-?0\.0{6})/;

/** A number that is kept as its text takes a microsecond, and so does every value beside it. */
const MAX_REVIVED = 100_000;

/**
 * Parses JSON so that JSON.stringify gives back every number as it was written: one that a double cannot hold
 * (a 64-bit id, 1e400, twenty decimals) or that is spelled unusually stays as its own text.
 * Refuses what has too much in it to be built in one go.
 */
export function parseLossless(text: string): unknown {
  // Looking for such numbers is far cheaper than a reviver over everything, and there rarely is one.
  checkValues(text, MAX_VALUES);
  if (!longOrExponent.test(text) && !oddlySpelled.test(text)) return JSON.parse(text);
  checkValues(text, MAX_REVIVED);
  return json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? json.rawJSON(source)
      : value,
  );
}
