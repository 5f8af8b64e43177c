import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import { NotAFileError, withRegularFile } from '../regular-files.ts';
import { describeProblem } from './problems.ts';
import { type Configuration, readConfiguration } from './read.ts';
import { reachWarnings } from './self.ts';

/** Receives warnings about parts of a file that have no effect. */
export type WarningListener = (warning: string) => void;

/** Throws one error with all problems if the file is invalid. */
export async function loadConfiguration(
  path: string,
  onWarning: WarningListener = () => {},
  read = readText,
): Promise<Configuration> {
  return configurationFrom(read(path), path, onWarning);
}

export function configurationFrom(text: string, path: string, onWarning: WarningListener): Configuration {
  const { configuration, warnings } = readConfiguration(text, resolve(path));
  const reached = reachWarnings(configuration.servers, resolve(path));
  for (const warning of [...warnings.map(describeProblem), ...reached]) {
    onWarning(`${resolve(path)}: ${warning}`);
  }
  return configuration;
}

/** Synchronous, because a watcher must know the contents before it handles another event. */
export function readText(path: string): string {
  return decoded(path, () => withRegularFile(path, (file) => readFileSync(file)));
}

/** Also reads pipes: `<(…)`, `/dev/stdin`. Blocks until the pipe ends, so signal handlers do not run meanwhile. */
export function readTextOrPipe(path: string): string {
  return decoded(path, () =>
    statSync(path).isFIFO() ? readFileSync(path) : withRegularFile(path, (file) => readFileSync(file)),
  );
}

function decoded(path: string, read: () => Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(read());
  } catch (error) {
    const file = resolve(path);
    throw new SwitchboardError('invalid_config', `cannot read ${file}: ${reasonOf(error)}`, {
      cause: error,
      data: { file },
    });
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof NotAFileError) return `it is ${error.kind}; give the path of a file`;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return reasons[code] ?? (error instanceof Error ? error.message : String(error));
}

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file; give the path of one',
  EACCES: 'reading it is not permitted; change its permissions',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text; save it as UTF-8',
};
