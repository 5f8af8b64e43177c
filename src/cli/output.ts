/** What moves the cursor, paints the screen, or changes the order in which text is read. Line breaks and tabs stay. */
const unprintable = /[^\P{Cc}\n\t]|[\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
/** How programs colour what they write: ESC [ … m. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const colour = /\x1b\[[\d;:]{0,64}m/g;

/** Text for people that others may have a part in: what is not to be shown as it is is shown escaped, colours are left out. */
export function printable(text: string): string {
  return text.replace(colour, '').replaceAll('\r\n', '\n').replace(unprintable, escaped);
}

/** One line of JSON, or several. A terminal shows it as it is, and it has the same value. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(unprintable, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Columns that line up, as text. Tables that share `widths` line up with those before them. */
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

/** A list, each row on one line: on a terminal it is cut to its width. What is cut is in the JSON and in `show`. */
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

/** What Switchboard did beside what it was asked for. */
export function tellMoved({ moved_secrets = [] }: { moved_secrets?: string[] | undefined }): void {
  if (moved_secrets.length > 0) {
    complain(`note: credentials were moved into secrets of the project: ${moved_secrets.join(', ')}`);
  }
}

export function printJson(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`);
}

/** The same on one line, for commands that print one for each thing that happens. */
export function printJsonLine(value: unknown): void {
  process.stdout.write(`${jsonText(value)}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

/** A line that was made of printable parts, and of colours of ours. */
export function printColoured(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function complain(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** What belongs to a list and is not in it, on one line: on a terminal it is cut to its width. */
export function note(text: string): void {
  const { isTTY, columns } = process.stderr;
  const line = `note: ${oneLine(text)}`;
  complain(isTTY && columns > 0 ? cutLines(line, columns) : line);
}

/**
 * Ends no command with a stack trace where its output cannot be written. Whoever reads a pipe may go away before its end
 * (`| head -1`), which is no failure; of others, such as a full disk, `failed` is told once. Commands that listen for
 * themselves decide for themselves.
 */
export function watchOutput(failed: (error: Error) => void): void {
  const { stdout, stderr } = process;
  let wasTold = false;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (wasTold || error.code === 'EPIPE' || stdout.listenerCount('error') > 1) return;
    wasTold = true;
    failed(error);
  });
  // There is nowhere left to say so.
  stderr.on('error', () => {});
}

/** What others said, as a part of a line. */
export function oneLine(text: string): string {
  return printable(text.replace(colour, '').replace(/\s+/g, ' ').trim());
}

/** Some errors have a list behind the first line, of what to do. */
export function firstLine(text: string): string {
  return oneLine(text.split('\n', 1)[0]!);
}

/** A time of the API as the user's clock shows it. */
export function localTime(time: string): string {
  const moment = new Date(time);
  const two = (part: number) => String(part).padStart(2, '0');
  const date = [moment.getFullYear(), two(moment.getMonth() + 1), two(moment.getDate())].join('-');
  return `${date} ${moment.toTimeString().slice(0, 8)}`;
}

/** "1 server", "2 servers". */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** "1 tool, 2 resources, 0 prompts". */
export function offerText(offer: Record<'tools' | 'resources' | 'prompts', number | null>): string {
  return (['tool', 'resource', 'prompt'] as const)
    .map((what) => counted(offer[`${what}s`] ?? 0, what))
    .join(', ');
}

/** The first sentence of a description, short enough for a line. */
export function summary(text: unknown, length = 80): string {
  if (typeof text !== 'string') return '';
  const line = text.trim().split('\n')[0] ?? '';
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}
