/** A number as spelled in the JSON text. */
class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type SourceReviver = (key: string, value: unknown, context: { source?: string }) => unknown;

// TypeScript does not declare the reviver's context yet.
const parse = JSON.parse as (text: string, reviver: SourceReviver) => unknown;

/** Like JSON.parse, but keeps the spelling of numbers. */
export function parseExactly(text: string): unknown {
  return parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? new NumberText(source!) : value,
  );
}

/** Independent of key order. */
export function canonical(value: unknown): string {
  if (value instanceof NumberText) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`);
  return `{${members.sort().join(',')}}`;
}
