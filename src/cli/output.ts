/** Columns that line up, as text. Tables that share `widths` line up with those before them. */
export function table(rows: string[][], widths: number[] = []): string {
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

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** What others said may hold anything, also what would move the cursor or paint the screen. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
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

/** The first sentence of a description, short enough for a line. */
export function summary(text: unknown, length = 80): string {
  if (typeof text !== 'string') return '';
  const line = text.trim().split('\n')[0] ?? '';
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}
