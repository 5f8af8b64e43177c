import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { SwitchboardError } from '../errors.ts';
import { home } from '../home.ts';
import { usageError } from './exit.ts';

/** `-` reads stdin. */
export async function readInput(path: string): Promise<string> {
  const bytes = path === '-' ? await buffer(process.stdin) : readBytes(path);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${inputName(path)} is not UTF-8 text.`);
  }
}

export function inputName(path: string): string {
  return path === '-' ? 'stdin' : resolve(path);
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw usageError(`Cannot read ${resolve(path)}: ${(error as Error).message}`);
  }
}

/** The given file, or the first default file that exists. */
export function findConfig(named: string | undefined): string {
  if (named !== undefined) return resolve(named);
  const defaults = ['mcp.json', '.mcp.json', join(home(), 'mcp.json')];
  const found = defaults.find((path) => existsSync(path));
  if (found !== undefined) return resolve(found);
  throw new SwitchboardError(
    'invalid_config',
    `No configuration file: none of ${defaults.join(', ')} exists. Choose one with --config, or create one with: switchboard import <file>`,
  );
}
