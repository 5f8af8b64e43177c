import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';

/** Longer chains are not followed. */
const MAX_HOPS = 32;
/** Each means that the request came through a proxy. */
const forwardingHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/** Addresses and ranges of proxies, whose forwarding headers are believed. */
export class TrustedProxies {
  private readonly ranges = new BlockList();
  private readonly isEmpty: boolean;

  /** `proxies`: valid addresses and ranges, such as 127.0.0.1 and 10.0.0.0/8. */
  constructor(proxies: readonly string[]) {
    this.isEmpty = proxies.length === 0;
    for (const proxy of proxies) {
      const [address = '', bits] = proxy.split('/');
      const family = isIPv6(address) ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.ranges.addAddress(address, family);
      else this.ranges.addSubnet(address, Number(bits), family);
    }
  }

  /** The address of the client: the last one in the chain that is no trusted proxy. */
  clientOf({ socket, headers }: IncomingMessage): string | undefined {
    const peer = plainAddress(socket.remoteAddress);
    if (this.isEmpty || peer === undefined || !this.has(peer)) return peer;
    let client = peer;
    for (const hop of hopsOf(headers['x-forwarded-for'], headers.forwarded).slice(-MAX_HOPS).toReversed()) {
      const address = plainAddress(hop);
      if (address === undefined) return client;
      client = address;
      if (!this.has(address)) return client;
    }
    return client;
  }

  private has(address: string): boolean {
    return this.ranges.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  }
}

/** Whether the request comes from a process of this machine, and not through a proxy. */
export function isDirectAndLocal({ socket, headers }: IncomingMessage): boolean {
  const { remoteAddress, localAddress } = socket;
  const peer = plainAddress(remoteAddress);
  if (peer === undefined || forwardingHeaders.some((name) => headers[name] !== undefined)) return false;
  return peer === '::1' || peer.startsWith('127.') || peer === plainAddress(localAddress);
}

/** From the client to the last proxy. Only one of the headers is believed: a client may send the one that the proxy does not set. */
function hopsOf(list: string | string[] | undefined, forwarded: string | undefined): string[] {
  if (list !== undefined) return String(list).split(',');
  if (forwarded === undefined) return [];
  return forwarded.split(',').map((hop) => /(?:^|;)\s*for="?([^";]*)"?/i.exec(hop)?.[1] ?? '');
}

/** Without port, brackets, zone and IPv4 mapping; undefined if it is no address. */
function plainAddress(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
  const address = bare.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(address) === 0 ? undefined : address;
}
