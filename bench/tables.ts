/** Formats tables and their cells. */
import { median, type Ratio, type Samples } from './measure.ts';
import type { VariantName } from './variants.ts';

export interface Table {
  title: string;
  explanation: string;
  columns: string[];
  rows: string[][];
}

/** A ratio with the quartiles of its cycles. */
export function ratioCell(ratio: Ratio | undefined): string {
  if (ratio === undefined) return '–';
  const { median, lowerQuartile, upperQuartile } = ratio;
  return `${median.toFixed(2)}× (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`;
}

export function microsecondCell(samples: Samples, name: VariantName): string {
  const nanoseconds = median((samples.get(name) ?? []).map(({ nanosecondsPerCall }) => nanosecondsPerCall));
  return nanoseconds === undefined ? '–' : `${Math.round(nanoseconds / 1000)} µs`;
}

export function textTable({ columns, rows }: Table): string {
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();
  return [line(columns), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

export function markdownTable({ columns, rows }: Table): string[] {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)];
}
