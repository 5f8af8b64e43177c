/** Whether a value of JSON is an object, and no list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value where it is an object, else one with nothing in it. */
export function asObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
