import { BlockList, connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { SwitchboardError } from '../../errors.ts';
import { basicCredentials, decoded } from './request-head.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface HttpProxy {
  host: string;
  port: number;
  isSecure: boolean;
  authorization: string | undefined;
  /** Its URL without a password. */
  label: string;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
loopback.addAddress('::1', 'ipv6');

/**
 * The proxy for this URL, if any, from the usual variables: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in lower or
 * upper case. Loopback addresses never have one.
 */
export function proxyFor(url: URL, environment: Environment): HttpProxy | undefined {
  const own = `${url.protocol.slice(0, -1)}_proxy`;
  const [name, value] = firstOf(environment, [own, 'all_proxy']);
  if (value === undefined) return undefined;
  const host = withoutBrackets(url.hostname).toLowerCase();
  if (isThisMachine(host)) return undefined;
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  const [, without = ''] = firstOf(environment, ['no_proxy']);
  if (without.split(/[\s,]+/).some((entry) => matches(entry.toLowerCase(), host, port))) return undefined;
  return read(name, value);
}

function firstOf(environment: Environment, names: readonly string[]): [string, string | undefined] {
  for (const name of names.flatMap((lower) => [lower, lower.toUpperCase()])) {
    const value = environment[name]?.trim();
    if (value !== undefined && value !== '') return [name, value];
  }
  return ['', undefined];
}

function isThisMachine(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  const version = isIP(host);
  return version !== 0 && loopback.check(host, version === 4 ? 'ipv4' : 'ipv6');
}

/** An entry of `no_proxy` is `*`, a domain with its subdomains, an address or a range of addresses, with or without a port. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  if (entry.includes('/')) return isInRange(entry, host);
  const [, name = entry, only] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  if (only !== undefined && only !== port) return false;
  const plain = withoutBrackets(name).replace(/^\*?\./, '');
  return host === plain || (isIP(host) === 0 && host.endsWith(`.${plain}`));
}

function isInRange(entry: string, host: string): boolean {
  const [address = '', bits = ''] = entry.split('/');
  const version = isIP(address);
  if (version === 0 || isIP(host) !== version || !/^\d{1,3}$/.test(bits)) return false;
  if (Number(bits) > (version === 4 ? 32 : 128)) return false;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const range = new BlockList();
  range.addSubnet(address, Number(bits), family);
  return range.check(host, family);
}

/** Like most programs, accepts the address of a proxy without a scheme. */
function parse(value: string): URL | null {
  return URL.parse(value.includes('://') ? value : `http://${value}`);
}

function read(name: string, value: string): HttpProxy {
  const url = parse(value);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new SwitchboardError(
      'invalid_config',
      `The variable ${name} is not the URL of a proxy: use http://host:port or https://host:port.`,
    );
  }
  const isSecure = url.protocol === 'https:';
  const port = Number(url.port) || (isSecure ? 443 : 80);
  return {
    host: withoutBrackets(url.hostname),
    port,
    isSecure,
    authorization: basicCredentials(url),
    label: `${url.protocol}//${url.hostname}:${port}`,
  };
}

/** The passwords in the variables for proxies, as written and decoded, for masking. */
export function proxyPasswords(environment: Environment): string[] {
  const names = ['http_proxy', 'https_proxy', 'all_proxy'].flatMap((name) => [name, name.toUpperCase()]);
  const passwords = names.flatMap((name) => {
    const value = environment[name]?.trim() ?? '';
    const { password = '' } = parse(value) ?? {};
    return [writtenPassword(value), password, decoded(password)];
  });
  return [...new Set(passwords)].filter((password) => password.length >= SHORTEST_MASKED);
}

/** Parsing a URL encodes some characters; logs may show it as written. */
function writtenPassword(value: string): string {
  return /^(?:[^/]*:\/\/)?[^/:@]*:([^/?#]*)@/.exec(value)?.[1] ?? '';
}

/** Shorter ones occur in too many other texts. */
const SHORTEST_MASKED = 8;

/** A plain HTTP request for a proxy: with the absolute URL, and the proxy's credentials. */
export function throughProxy(requestHead: string, url: URL, { authorization }: HttpProxy): string {
  const target = requestHead.indexOf(' ') + 1;
  const headers = requestHead.indexOf('\r\n') + 2;
  const line = authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`;
  return `${requestHead.slice(0, target)}http://${url.host}${requestHead.slice(target, headers)}${line}${requestHead.slice(headers)}`;
}

const MAX_HEAD_BYTES = 16 * 1024;

export function connectToProxy({ host, port, isSecure }: HttpProxy): Socket {
  const options = { host, port, noDelay: true };
  return isSecure ? connectTls({ ...options, ...tlsOptions(host) }) : connectTcp(options);
}

export function tlsOptions(host: string): { servername?: string; ALPNProtocols: string[] } {
  return { ...(isIP(host) === 0 ? { servername: host } : {}), ALPNProtocols: ['http/1.1'] };
}

/** URLs have IPv6 addresses in brackets, sockets do not. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** Opens a tunnel to a server through the proxy that this socket is connected to. */
export function openTunnel(
  socket: Socket,
  { authorization }: HttpProxy,
  { host, port }: { host: string; port: number },
  opened: (error?: Error) => void,
): void {
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const identity = authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`;
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${identity}\r\n`, 'latin1');
  let head = '';
  const settle = (error?: Error) => {
    socket.off('data', read);
    opened(error);
  };
  const read = (chunk: Buffer) => {
    head += chunk.toString('latin1');
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) {
      if (head.length > MAX_HEAD_BYTES) settle(new Error('its response is not HTTP'));
      return;
    }
    const [, status, reason = ''] = /^HTTP\/1\.[01] (\d{3}) ?([^\r\n]*)/.exec(head) ?? [];
    if (status === undefined) settle(new Error('its response is not HTTP'));
    else if (!status.startsWith('2'))
      settle(new Error(`it responded with HTTP ${status} ${reason}`.trimEnd()));
    // The server must wait for our TLS greeting.
    else if (head.length > end + 4) settle(new Error('it sent data after its response'));
    else settle();
  };
  socket.on('data', read);
}
