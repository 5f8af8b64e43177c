import { SwitchboardError } from '../errors.ts';

/** As bin/switchboard.js, for the same reasons. */
const NEEDED = 24;

/** Without it, what is missing in an older one would be told in the words of whoever needs it first. */
export function needNode(version: string = process.versions.node): void {
  if (Number(version.split('.')[0]) >= NEEDED) return;
  const what = `switchboard needs Node.js ${NEEDED} or newer, and this is ${version}: see https://nodejs.org`;
  throw new SwitchboardError('invalid_config', what);
}
