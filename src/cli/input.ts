import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { usageError } from './exit.ts';

/** The text of a file; `-` is what is piped in. */
export async function readInput(path: string): Promise<string> {
  const bytes = path === '-' ? await buffer(process.stdin) : readBytes(path);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${inputName(path)} is not UTF-8 text.`);
  }
}

/** What messages call it. */
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
