import { readListeners } from '../access/sockets.ts';
import { readToken } from '../access/token.ts';
import { home } from '../home.ts';
import { UnreachableError } from './exit.ts';
import { complain } from './output.ts';

/** What shows a Switchboard that we belong to it. */
export interface Pass {
  headers: Record<string, string>;
  /** Looks at each connection before that is sent on it: at the port of one that has ended anybody can listen. */
  vet?: () => Promise<void>;
}

/**
 * The token goes to this machine only, and only where this user, or root, listens: whoever else waits at the port would
 * have it. A name may stand for two addresses, so it takes a number.
 */
export async function passFor(address: string): Promise<Pass> {
  const { protocol, hostname, host } = new URL(address);
  const listener = await whoListensAt(address);
  if (listener === 'others') {
    complain(
      `warning: What listens at ${host} belongs to another user of this machine: its answers are not those of a Switchboard of your own. It is sent no token, but all that you ask of it.`,
    );
  }
  const isNumber = hostname === '127.0.0.1' || hostname === '[::1]';
  if (protocol !== 'http:' || !isNumber || listener !== 'us') return { headers: {} };
  const token = readToken(home());
  if (token === undefined) return { headers: {} };
  const vet = async () => {
    if ((await whoListensAt(address)) !== 'us') throw notOurs(address);
  };
  return { headers: { authorization: `Bearer ${token}` }, vet };
}

/** The same for the API, which lets in nobody but its own user: what other users listen with is told nothing, least of all secrets. */
export async function apiPassFor(address: string): Promise<Pass> {
  if ((await whoListensAt(address)) === 'others') throw notOurs(address);
  return passFor(address);
}

/** Nobody where it is not known. */
async function whoListensAt(address: string): Promise<'us' | 'others' | 'nobody'> {
  const { hostname, port, protocol } = new URL(address);
  const usualPort = protocol === 'https:' ? 443 : 80;
  const ends = addressesOf(hostname).map((host) => ({ address: host, port: Number(port || usualPort) }));
  const listeners = (await Promise.all(ends.map((end) => readListeners(end).catch(() => [])))).flat();
  const user = process.geteuid?.();
  if (listeners.length === 0) return 'nobody';
  return listeners.every((owner) => owner === user || owner === 0) ? 'us' : 'others';
}

/** Of this machine. */
function addressesOf(hostname: string): string[] {
  if (hostname === 'localhost') return ['127.0.0.1', '::1'];
  return hostname === '[::1]' ? ['::1'] : hostname.startsWith('127.') ? [hostname] : [];
}

function notOurs(address: string): UnreachableError {
  return new UnreachableError(
    `What listens at ${new URL(address).host} belongs to another user of this machine, and was told nothing.`,
  );
}
