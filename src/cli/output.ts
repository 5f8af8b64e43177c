/** Characters that move the cursor or change the text direction, except line breaks and tabs. */
const unprintable = /[^\P{Cc}\n\t]|[\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
/** Colour sequences: ESC [ … m. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches escape sequences on purpose
const colour = /\x1b\[[\d;:]{0,64}m/g;

/** Makes untrusted text safe for a terminal: escapes control characters, removes colours. */
export function printable(text: string): string {
  return text.replace(colour, '').replaceAll('\r\n', '\n').replace(unprintable, escaped);
}

/** Escapes keep the parsed value unchanged. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(unprintable, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Tables that share `widths` have aligned columns. */
export function table(cells: string[][], widths: number[] = []): string {
  const rows = cells.map((row) => row.map(oneLine));
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Cuts rows to the width of the terminal; JSON and `show` have the full text. */
export function listTable(cells: string[][], widths?: number[]): string {
  const { isTTY, columns } = process.stdout;
  const text = table(cells, widths);
  return isTTY && columns > 0 ? cutLines(text, columns) : text;
}

function cutLines(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => (line.length > width ? `${line.slice(0, width - 1).toWellFormed()}…` : line))
    .join('\n');
}

export function printList<Item>(
  what: string,
  items: Item[],
  row: (item: Item) => string[],
  { json }: { json?: boolean },
): void {
  if (json) printJson(items);
  else print(items.length === 0 ? `no ${what}` : listTable(items.map(row)));
}

export function printResult(value: unknown, text: string, { json }: { json?: boolean }): void {
  if (json) printJson(value);
  else print(text);
}

export function noteMovedSecrets({ moved_secrets = [] }: { moved_secrets?: string[] | undefined }): void {
  if (moved_secrets.length > 0) {
    complain(`note: moved credentials into secrets of the project: ${moved_secrets.join(', ')}`);
  }
}

export function printJson(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`);
}

/** One line, for commands that print a stream of values. */
export function printJsonLine(value: unknown): void {
  process.stdout.write(`${jsonText(value)}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

/** Prints a line that is already safe and may contain our own colours. */
export function printColoured(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function complain(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Prints to stderr, cut to the width of the terminal. */
export function note(text: string): void {
  const { isTTY, columns } = process.stderr;
  const line = `note: ${oneLine(text)}`;
  complain(isTTY && columns > 0 ? cutLines(line, columns) : line);
}

/**
 * Keeps stdout errors from ending a command with a stack trace. A closed pipe (`| head -1`) is not a failure; other errors,
 * such as a full disk, are reported once. Commands with their own listener handle them.
 */
export function watchOutput(onError: (error: Error) => void): void {
  const { stdout, stderr } = process;
  let wasReported = false;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (wasReported || error.code === 'EPIPE' || stdout.listenerCount('error') > 1) return;
    wasReported = true;
    onError(error);
  });
  // There is nowhere left to report it.
  stderr.on('error', () => {});
}

/** Makes untrusted text safe as part of a line. */
export function oneLine(text: string): string {
  return printable(text.replace(colour, '').replace(/\s+/g, ' ').trim());
}

/** Some errors list remedies after the first line. */
export function firstLine(text: string): string {
  return oneLine(text.split('\n', 1)[0]!);
}

/** In the user's time zone. */
export function localTime(time: string): string {
  const moment = new Date(time);
  const two = (part: number) => String(part).padStart(2, '0');
  const date = [moment.getFullYear(), two(moment.getMonth() + 1), two(moment.getDate())].join('-');
  return `${date} ${moment.toTimeString().slice(0, 8)}`;
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

export function offerText(offer: Record<'tools' | 'resources' | 'prompts', number | null>): string {
  return (['tool', 'resource', 'prompt'] as const)
    .map((what) => counted(offer[`${what}s`] ?? 0, what))
    .join(', ');
}

export function summary(text: unknown, length = 80): string {
  if (typeof text !== 'string') return '';
  const line = text.trim().split('\n')[0] ?? '';
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}
