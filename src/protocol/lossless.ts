import { checkValues, MAX_VALUES } from './bounded-parse.ts';

interface RawJson {
  rawJSON: string;
}

type SourceReviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;

// TypeScript's library does not declare these two yet.
const json = JSON as unknown as {
  parse(text: string, reviver?: SourceReviver): unknown;
  rawJSON(text: string): RawJson;
};

/** Long numbers may not fit a double, and exponents have many spellings. */
const longOrExponent = /\d[\d.]{15}|\d[eE]/;
/** Short numbers that JSON.stringify would spell differently: `-0`, `1.0`, `0.0000001`. */
const oddlySpelled = /(?:^|[[:,])\s*(?:-0(?![\d.])|-?\d+\.\d*0(?!\d)|-?0\.0{6})/;

/** Preserving the text of a number takes a microsecond for each value of the document. */
const MAX_REVIVED = 100_000;

/**
 * Parses JSON so that JSON.stringify restores every number as written: one that a double cannot hold (a 64-bit id,
 * 1e400, twenty decimals) or with an unusual spelling keeps its text. Throws if there are too many values.
 */
export function parseLossless(text: string): unknown {
  // Searching for such numbers is far cheaper than a reviver, and they are rare.
  checkValues(text, MAX_VALUES);
  if (!longOrExponent.test(text) && !oddlySpelled.test(text)) return JSON.parse(text);
  checkValues(text, MAX_REVIVED);
  return json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? json.rawJSON(source)
      : value,
  );
}
