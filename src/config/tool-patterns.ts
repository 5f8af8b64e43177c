/** Matches tools by name, or by a pattern in which `*` matches any text. */
export function allowedBy(names: readonly string[]): (tool: { name: string }) => boolean {
  const patterns = names.map((name) => name.split('*'));
  return ({ name }) => patterns.some((parts) => fits(name, parts));
}

/** A server offers the tools that it allows and does not deny. */
export interface ToolChoice {
  allow?: string[] | undefined;
  deny?: string[] | undefined;
}

/** Undefined if all tools are offered. */
export function toolFilter(choice: ToolChoice | undefined): ((tool: string) => boolean) | undefined {
  if (choice?.allow === undefined && choice?.deny === undefined) return undefined;
  const isAllowed = allowedBy(choice.allow ?? ['*']);
  const isDenied = allowedBy(choice.deny ?? []);
  return (name) => isAllowed({ name }) && !isDenied({ name });
}

/** Matches each part at its first occurrence, in linear time; a RegExp with many stars could backtrack for long. */
function fits(name: string, parts: readonly string[]): boolean {
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.length === 1) return name === first;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
