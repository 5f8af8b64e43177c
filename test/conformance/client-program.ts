import type { Era } from '../eras/peer.ts';
import { fixtureProgram, programsFolder } from '../helpers/programs.ts';

/** The shell command of an end client of this era. With `exec`, a timeout stops the program and not only the shell. */
export function clientCommand(era: Era): string {
  const words = [`TEST_PROGRAMS=${programsFolder}`, process.execPath, fixtureProgram('conformance-client')];
  return `exec env ${words.map((word) => `"${word}"`).join(' ')} ${era}`;
}
