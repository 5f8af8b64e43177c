import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readListeners } from '../access/sockets.ts';
import { openToken, readToken, tokenPath } from '../access/token.ts';
import { home } from '../home.ts';
import { UnreachableError } from './exit.ts';
import { complain, print } from './output.ts';

/** Credentials for a Switchboard of this user. */
export interface Pass {
  headers: Record<string, string>;
  /** Checks each connection before anything is sent: after a Switchboard exits, any program can listen on its port. */
  vet?: () => Promise<void>;
}

/**
 * The token is sent to this machine only, and only if this user or root listens there: another program would have it. A
 * host name may have two addresses, so the address must be numeric.
 */
export async function passFor(address: string): Promise<Pass> {
  const { protocol, hostname, host } = new URL(address);
  const listener = await ownerOfListener(address);
  if (listener === 'others') {
    complain(
      `warning: The program at ${host} belongs to another user of this machine. It gets your requests, but no token; do not trust its responses.`,
    );
  }
  const isNumeric = hostname === '127.0.0.1' || hostname === '[::1]';
  if (protocol !== 'http:' || !isNumeric || listener !== 'us') return { headers: {} };
  const token = readToken(home());
  if (token === undefined) return { headers: {} };
  const vet = async () => {
    if ((await ownerOfListener(address)) !== 'us') throw notOurs(address);
  };
  return { headers: { authorization: `Bearer ${token}` }, vet };
}

/** For the API, which only its own user may call: nothing is sent to programs of other users. */
export async function apiPassFor(address: string): Promise<Pass> {
  if ((await ownerOfListener(address)) === 'others') throw notOurs(address);
  return passFor(address);
}

async function ownerOfListener(address: string): Promise<'us' | 'others' | 'nobody'> {
  const { hostname, port, protocol } = new URL(address);
  const usualPort = protocol === 'https:' ? 443 : 80;
  const ends = addressesOf(hostname).map((host) => ({ address: host, port: Number(port || usualPort) }));
  const listeners = (await Promise.all(ends.map((end) => readListeners(end).catch(() => [])))).flat();
  const user = process.geteuid?.();
  if (listeners.length === 0) return 'nobody';
  return listeners.every((owner) => owner === user || owner === 0) ? 'us' : 'others';
}

function addressesOf(hostname: string): string[] {
  if (hostname === 'localhost') return ['127.0.0.1', '::1'];
  return hostname === '[::1]' ? ['::1'] : hostname.startsWith('127.') ? [hostname] : [];
}

function notOurs(address: string): UnreachableError {
  return new UnreachableError(
    `The program at ${new URL(address).host} belongs to another user of this machine. Nothing was sent to it.`,
  );
}

/** Prints the token, and creates it if there is none. */
export function printToken(): void {
  const path = tokenPath(home());
  const existed = existsSync(path);
  const found = openToken(home(), (message) => complain(`warning: ${message}`));
  complain(`The token is ${existed ? 'from' : 'new, in'} ${path}.`);
  // Every Switchboard records its processes there.
  if (!existsSync(join(home(), 'run'))) {
    complain(
      'warning: No Switchboard was started with this home (SWITCHBOARD_HOME) yet. One with another home has another token.',
    );
  }
  print(found);
}
