import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs';

export class NotAFileError extends Error {
  readonly kind: string;

  constructor(path: string, kind: string) {
    super(`${path} is ${kind} and no file`);
    this.kind = kind;
  }
}

/**
 * Opens a file to read it. Anything else is refused before it is touched: a pipe would keep the process, and the signals
 * that are to end it, waiting for somebody who writes to it, and a device may have no end.
 */
export function withRegularFile<T>(path: string, use: (file: number, stats: Stats) => T): T {
  // Windows has no such flag, and no such pipes in its folders.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new NotAFileError(path, kindOf(stats));
    return use(file, stats);
  } finally {
    closeSync(file);
  }
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a folder';
  return stats.isFIFO() ? 'a pipe' : 'a device';
}
