type Defined<Value> = { [Key in keyof Value]?: Exclude<Value[Key], undefined> };

/** Removes keys whose value is undefined. */
export function defined<Value extends object>(value: Value): Defined<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as Defined<Value>;
}
