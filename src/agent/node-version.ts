import { SwitchboardError } from '../errors.ts';

/** The same as in bin/switchboard.js. */
const NEEDED = 24;

/** Gives a clear error instead of a failure in the first missing feature. */
export function needNode(version: string = process.versions.node): void {
  if (Number(version.split('.')[0]) >= NEEDED) return;
  const what = `switchboard requires Node.js ${NEEDED} or newer, but this is ${version}: see https://nodejs.org`;
  throw new SwitchboardError('invalid_config', what);
}
