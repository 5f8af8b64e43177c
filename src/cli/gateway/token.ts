import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openToken, tokenPath } from '../../access/token.ts';
import { home } from '../../home.ts';
import { complain, print } from '../output.ts';

/** Prints the token that lets others in, and makes it where there is none. */
export function token(): void {
  const path = tokenPath(home());
  const wasThere = existsSync(path);
  const found = openToken(home(), (message) => complain(`warning: ${message}`));
  complain(`The token ${wasThere ? 'is from' : 'was made in'} ${path}.`);
  if (!wasStarted()) {
    complain(
      'warning: No Switchboard has been started with this home yet (SWITCHBOARD_HOME), and one with another home has another token.',
    );
  }
  print(found);
}

/** Every Switchboard notes there which processes it starts. */
function wasStarted(): boolean {
  return existsSync(join(home(), 'run'));
}
