/** A number of a JSON text, as it is written there. */
class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type SourceReviver = (key: string, value: unknown, context: { source?: string }) => unknown;

// The types of TypeScript's library do not have the reviver's context yet.
const parse = JSON.parse as (text: string, reviver: SourceReviver) => unknown;

/** What JSON.parse reads, but with numbers as they are written. */
export function parseExactly(text: string): unknown {
  return parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? new NumberText(source!) : value,
  );
}

/** One text for each value, whatever the order of its keys. */
export function canonical(value: unknown): string {
  if (value instanceof NumberText) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`);
  return `{${members.sort().join(',')}}`;
}
