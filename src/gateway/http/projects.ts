import type { IncomingMessage } from 'node:http';
import type { Incoming } from '../caller.ts';

/** The projects that a request names: in its address, and in the header X-Project-Id. */
export function projectsOf({ headers }: IncomingMessage, inPath: string | undefined): Incoming['projects'] {
  const header = headers['x-project-id'];
  if (header === undefined) return inPath === undefined ? undefined : [inPath];
  return inPath === undefined ? [String(header)] : [inPath, String(header)];
}
