import type { IncomingMessage } from 'node:http';

/** The header in which a client names the labels of the servers that it prefers. */
export function preferOf({ headers }: IncomingMessage): string | undefined {
  const header = headers['x-switchboard-prefer'];
  return header === undefined ? undefined : String(header);
}
