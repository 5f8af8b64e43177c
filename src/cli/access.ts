import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { trustAuthorities } from '../channels/authorities.ts';
import { home } from '../home.ts';
import { readListeners } from '../identity/sockets.ts';
import { openToken, readToken, tokenPath } from '../identity/token.ts';
import { isOnThisMachine, isOwnNumber, ownAddressesOf } from './addresses.ts';
import { givenKey } from './credential.ts';
import { KEY_VARIABLE } from './defaults.ts';
import { UnreachableError } from './exit.ts';
import { complain, print } from './output.ts';

/** How to connect. */
export interface Trust {
  /** Checks each connection before anything is sent: after a Switchboard exits, any program can listen on its port. */
  vet?: () => Promise<void>;
  /**
   * Safe only with `vet`: the system says which user owns the listening socket, and no one else can be behind it. No certificate
   * could say that, and one for sb.example does not fit 127.0.0.1.
   */
  acceptsAnyCertificate?: true;
}

/** How to connect, and what to send as proof of who we are. */
export interface Pass extends Trust {
  headers: Record<string, string>;
}

/**
 * The key goes to the address that the user named, whatever it is. The token goes only to a listener of this user or root on
 * this machine: any other program could steal it. Then the address must be numeric, because a host name may resolve to several.
 */
export async function passFor(address: string): Promise<Pass> {
  const key = givenKey();
  const listener = await ownerOfListener(address);
  const trust = trustIn(address, listener);
  warnOf(address, listener, key !== undefined);
  const isOwn = isOwnNumber(address) && listener === 'us';
  const credential = key ?? (isOwn ? readToken(home()) : undefined);
  if (credential === undefined) return { headers: {}, ...trust };
  const vet = listener === 'us' ? { vet: vetOf(address) } : {};
  return { headers: { authorization: `Bearer ${credential}` }, ...vet, ...trust };
}

/** For the API, which only the user who runs it and bearers of a key may call. */
export async function apiPassFor(address: string): Promise<Pass> {
  return givenKey() === undefined ? ownPassFor(address) : passFor(address);
}

/** Rejects if the listener belongs to another user of this machine. */
export async function ownPassFor(address: string): Promise<Pass> {
  if ((await ownerOfListener(address)) === 'others') throw notOurs(address);
  return passFor(address);
}

/** For requests that need no proof. */
export async function trustFor(address: string): Promise<Trust> {
  return address.startsWith('https:') ? trustIn(address, await ownerOfListener(address)) : {};
}

type Listener = 'us' | 'others' | 'nobody';

function trustIn(address: string, listener: Listener): Trust {
  if (!address.startsWith('https:')) return {};
  trustSystemAuthorities();
  return isOwnNumber(address) && listener === 'us'
    ? { vet: vetOf(address), acceptsAnyCertificate: true }
    : {};
}

function vetOf(address: string): () => Promise<void> {
  return async () => {
    if ((await ownerOfListener(address)) !== 'us') throw notOurs(address);
  };
}

let isTrusting = false;

/** As servers of `up` are: also the certificate authorities of SSL_CERT_FILE and SSL_CERT_DIR. */
function trustSystemAuthorities(): void {
  if (isTrusting) return;
  isTrusting = true;
  trustAuthorities(process.env, warnOnce);
}

function warnOf(address: string, listener: Listener, hasKey: boolean): void {
  const { protocol, host, origin } = new URL(address);
  // The certificate is checked.
  if (protocol === 'https:' && hasKey) return;
  if (listener === 'others') {
    const gets = hasKey ? 'your requests and your key' : 'your requests, but no token';
    warnOnce(
      `The program at ${host} belongs to another user of this machine. It gets ${gets}; do not trust its responses${hasKey ? ' unless it is the Switchboard that the key is for' : ''}.`,
    );
  }
  if (hasKey && !isOnThisMachine(address)) {
    warnOnce(`The key travels to ${origin} unencrypted: others on the network can read it. Use https://.`);
  }
}

const warned = new Set<string>();

function warnOnce(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  complain(`warning: ${message}`);
}

async function ownerOfListener(address: string): Promise<Listener> {
  const { port, protocol } = new URL(address);
  const usualPort = protocol === 'https:' ? 443 : 80;
  const ends = ownAddressesOf(address).map((host) => ({ address: host, port: Number(port || usualPort) }));
  const listeners = (await Promise.all(ends.map((end) => readListeners(end).catch(() => [])))).flat();
  const user = process.geteuid?.();
  if (listeners.length === 0) return 'nobody';
  return listeners.every((owner) => owner === user || owner === 0) ? 'us' : 'others';
}

function notOurs(address: string): UnreachableError {
  return new UnreachableError(
    `The program at ${new URL(address).host} belongs to another user of this machine. Nothing was sent to it. If it is a Switchboard that you have a key for, set ${KEY_VARIABLE}.`,
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
