/** Matches tools by name, or by a pattern in which `*` matches any text. */
export function allowedBy(names: readonly string[]): (tool: { name: string }) => boolean {
  const tests = names.map(patternTest);
  return ({ name }) => tests.some((matches) => matches(name));
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

/**
 * Compares texts with a pattern: both ends first, then each part at its first occurrence, so that no text is searched twice. A
 * RegExp with many stars could backtrack for long.
 */
export function patternTest(pattern: string): (text: string) => boolean {
  const parts = pattern.split('*');
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.length === 1) return (text) => text === first;
  const middle = parts.slice(1, -1).filter((part) => part !== '');
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return at <= end;
  };
}
