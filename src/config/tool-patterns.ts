/** Whether a tool is one of those that are named: by its name, or by a pattern in which `*` stands for anything. */
export function allowedBy(names: readonly string[]): (tool: { name: string }) => boolean {
  const patterns = names.map((name) => name.split('*'));
  return ({ name }) => patterns.some((parts) => fits(name, parts));
}

/** Which of its own tools a server offers here: those that it allows, but for those that it denies. */
export interface ToolChoice {
  allow?: string[] | undefined;
  deny?: string[] | undefined;
}

/** Whether a tool is offered; undefined where all are. */
export function toolFilter(choice: ToolChoice | undefined): ((tool: string) => boolean) | undefined {
  if (choice?.allow === undefined && choice?.deny === undefined) return undefined;
  const isAllowed = allowedBy(choice.allow ?? ['*']);
  const isDenied = allowedBy(choice.deny ?? []);
  return (name) => isAllowed({ name }) && !isDenied({ name });
}

/** Each part is taken where it stands first, so that no pattern takes long, as one of RegExp could with many stars. */
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
