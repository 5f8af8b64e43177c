import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { home } from '../home.ts';
import { readListeners } from '../identity/sockets.ts';
import { openToken, readToken, tokenPath } from '../identity/token.ts';
import { UnreachableError } from './exit.ts';
import { complain, print } from './output.ts';

export interface Pass {
  headers: Record<string, string>;
  /** Checks each connection before anything is sent: after a Switchboard exits, any program can listen on its port. */
  vet?: () => Promise<void>;
}

/**
 * The token is sent only to a listener of this user or root on this machine: any other program could steal it. The address
 * must be numeric, because a host name may resolve to several.
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

/** For the API, which only the user who runs it may call. */
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

/** Prints the token, creating it if necessary. */
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
