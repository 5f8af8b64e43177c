import { KEY_VARIABLE } from './defaults.ts';
import { usageError } from './exit.ts';

/** The key of the environment. Errors do not repeat it. */
export function givenKey(): string | undefined {
  const key = process.env[KEY_VARIABLE]?.trim() ?? '';
  if (key === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw usageError(`${KEY_VARIABLE} is no key: it contains characters that keys do not have.`);
}
