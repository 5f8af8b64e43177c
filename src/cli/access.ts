import { readListeners } from '../access/sockets.ts';
import { readToken } from '../access/token.ts';
import { home } from './paths.ts';

const loopback = new Set(['127.0.0.1', '[::1]']);

/**
 * What shows the Switchboard at the address that we belong to it. The token goes to this machine only, and only where
 * this user, or root, listens: whoever else waits at the port would have it. A name may stand for two addresses, so it
 * takes a number.
 */
export async function credentialsFor(address: string): Promise<Record<string, string>> {
  const { protocol, hostname, port } = new URL(address);
  if (protocol !== 'http:' || !loopback.has(hostname)) return {};
  const token = await readToken(home());
  if (token === undefined) return {};
  const host = hostname.replace(/^\[|\]$/g, '');
  const listeners = await readListeners({ address: host, port: Number(port || '80') }).catch(() => []);
  const user = process.geteuid?.();
  const isOurs = listeners.length > 0 && listeners.every((owner) => owner === user || owner === 0);
  return isOurs ? { authorization: `Bearer ${token}` } : {};
}
