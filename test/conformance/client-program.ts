import type { Era } from '../eras/peer.ts';
import { fixtureProgram, programsFolder } from '../helpers/programs.ts';

/**
 * The shell command that runs an end client of this era over Switchboard. `exec`: the shell gives way to the program, which
 * is then the one that is stopped when it takes too long.
 */
export function clientCommand(era: Era): string {
  const words = [`TEST_PROGRAMS=${programsFolder}`, process.execPath, fixtureProgram('conformance-client')];
  return `exec env ${words.map((word) => `"${word}"`).join(' ')} ${era}`;
}
