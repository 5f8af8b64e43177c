import { openToken } from '../access/token.ts';
import { complain, print } from './output.ts';
import { home } from './paths.ts';

/** Prints the token that lets others in, and makes it where there is none. */
export async function token(): Promise<void> {
  print(await openToken(home(), (message) => complain(`warning: ${message}`)));
}
