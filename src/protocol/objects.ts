/** Whether a value of JSON is an object, and no list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value of JSON in words. `String` would ask an object for its own `toString`, which may be anything that its sender wrote. */
export function inWords(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');
}

/** The value where it is an object, else one with nothing in it. */
export function asObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
