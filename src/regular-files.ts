import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs';

export class NotAFileError extends Error {
  readonly kind: string;

  constructor(path: string, kind: string) {
    super(`${path} is ${kind}, not a file`);
    this.kind = kind;
  }
}

/**
 * Opens a file for reading, and rejects anything else before reading: a pipe could block the process and its signal
 * handlers until someone writes to it, and a device may be endless.
 */
export function withRegularFile<T>(path: string, use: (file: number, stats: Stats) => T): T {
  // Windows has neither this flag nor named pipes in folders.
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
