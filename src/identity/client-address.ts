import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6, type Socket, SocketAddress } from 'node:net';

/** Longer chains are not followed. */
const MAX_HOPS = 32;
/** Each means that the request came through a proxy, like all that begin with `x-forwarded-`. */
const forwardingHeaders = [
  ...['forwarded', 'x-forwarded', 'x-original-forwarded-for', 'via'],
  ...['x-real-ip', 'x-client-ip', 'client-ip', 'true-client-ip', 'x-cluster-client-ip', 'fastly-client-ip'],
  ...['cf-connecting-ip', 'cf-ray', 'x-envoy-external-address'],
];

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
  clientOf({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string | undefined {
    const peer = plainAddress(socket.remoteAddress);
    if (this.isEmpty || peer === undefined || !this.has(peer)) return peer;
    let client = peer;
    for (const hop of hopsOf(headers['x-forwarded-for'], headers.forwarded)) {
      const address = plainAddress(hop);
      if (address === undefined) return client;
      client = address;
      if (!this.has(address)) return client;
    }
    return client;
  }

  /** Whether the connection comes from a trusted proxy, so that each request may be of another client. */
  trusts({ remoteAddress }: Socket): boolean {
    const peer = this.isEmpty ? undefined : plainAddress(remoteAddress);
    return peer !== undefined && this.has(peer);
  }

  private has(address: string): boolean {
    return this.ranges.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  }
}

/** Whether the request comes from a process of this machine, and not through a proxy. */
export function isDirectAndLocal({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
  const { remoteAddress, localAddress } = socket;
  const peer = plainAddress(remoteAddress);
  if (peer === undefined || Object.keys(headers).some(tellsOfProxy)) return false;
  return peer === '::1' || peer.startsWith('127.') || peer === plainAddress(localAddress);
}

function tellsOfProxy(header: string): boolean {
  return header.startsWith('x-forwarded-') || forwardingHeaders.includes(header);
}

/**
 * From the last proxy to the client. `X-Forwarded-For` is preferred, because most proxies set it and leave a `Forwarded` header of
 * the client alone.
 */
function hopsOf(list: string | string[] | undefined, forwarded: string | undefined): string[] {
  if (list !== undefined) return lastHops(String(list));
  if (forwarded === undefined) return [];
  return lastHops(forwarded).map(addressIn);
}

/** The `for` of an element of `Forwarded`. */
function addressIn(element: string): string {
  const pairs = element.split(';').map((pair) => pair.trim());
  const given = pairs.find((pair) => pair.toLowerCase().startsWith('for='))?.slice('for='.length) ?? '';
  return given.startsWith('"') && given.endsWith('"') ? given.slice(1, -1) : given;
}

/** Does not split all of a long header. */
function lastHops(list: string): string[] {
  const hops: string[] = [];
  for (let end = list.length; end > 0 && hops.length < MAX_HOPS; ) {
    const start = list.lastIndexOf(',', end - 1);
    hops.push(list.slice(start + 1, end));
    end = start;
  }
  return hops;
}

/** Without port, brackets, zone and IPv4 mapping, spelled in one way; undefined if it is no address. */
function plainAddress(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
  const unmapped = withoutMapping(bare);
  const family = isIP(unmapped);
  if (family === 4) return unmapped;
  if (family === 0) return undefined;
  const { address } = new SocketAddress({ address: bare.split('%', 1)[0]!, family: 'ipv6' });
  return withoutMapping(address);
}

function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
