interface RawJson {
  rawJSON: string;
}

type SourceReviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;

// The types of TypeScript's library do not have these two of ECMAScript's yet.
const json = JSON as unknown as {
  parse(text: string, reviver?: SourceReviver): unknown;
  rawJSON(text: string): RawJson;
};

/**
 * Parses JSON so that JSON.stringify gives back every number as it was written: one that a double cannot hold
 * (a 64-bit id, 1e400, twenty decimals) stays as its own text.
 */
export function parseLossless(text: string): unknown {
  // Short numbers all fit a double; looking for a long one is far cheaper than a reviver over everything.
  if (!/\d{16}|\d[eE]/.test(text) && !/\d[\d.]{15}/.test(text)) return JSON.parse(text);
  return json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? json.rawJSON(source)
      : value,
  );
}
