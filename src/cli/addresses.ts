import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Whether requests to this address stay on this machine. */
export function isOnThisMachine(url: string): boolean {
  return ownAddressesOf(url).length > 0;
}

export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}

/** Whether it is one address of this machine, for certain. A host name may resolve to several. */
export function isOwnNumber(url: string): boolean {
  return new URL(url).hostname !== 'localhost' && isOnThisMachine(url);
}

/** The addresses of this machine that a URL may lead to. */
export function ownAddressesOf(url: string): string[] {
  const { hostname } = new URL(url);
  if (hostname === 'localhost') return ['127.0.0.1', '::1'];
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) === 0) return [];
  return isLoopback(url) || hasInterface(address) ? [address] : [];
}

function hasInterface(address: string): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some((own) => own.address === address));
}
