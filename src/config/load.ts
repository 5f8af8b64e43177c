import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import { describeProblem } from './problems.ts';
import { readConfiguration } from './read.ts';
import type { Configuration } from './types.ts';

/** Told about what a file has in it that has no effect. */
export type WarningListener = (warning: string) => void;

/** Reads a configuration file; a wrong one is refused with all its problems. */
export async function loadConfiguration(
  path: string,
  onWarning: WarningListener = () => {},
): Promise<Configuration> {
  return configurationFrom(readText(path), path, onWarning);
}

export function configurationFrom(text: string, path: string, onWarning: WarningListener): Configuration {
  const { configuration, warnings } = readConfiguration(text, resolve(path));
  for (const warning of warnings) onWarning(`${resolve(path)}: ${describeProblem(warning)}`);
  return configuration;
}

/** Synchronous: such files are small, and whoever watches one must know its contents before anything else happens. */
export function readText(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const file = resolve(path);
    const reason = reasons[code] ?? (error instanceof Error ? error.message : String(error));
    throw new SwitchboardError('invalid_config', `cannot read ${file}: ${reason}`, {
      cause: error,
      data: { file },
    });
  }
}

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file; give the path of one',
  EACCES: 'reading it is not permitted; change its permissions',
  EISDIR: 'it is a folder; give the path of a file',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text; save it as UTF-8',
};
