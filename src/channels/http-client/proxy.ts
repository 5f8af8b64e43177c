import { BlockList, connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { SwitchboardError } from '../../errors.ts';
import { basicCredentials, decoded } from './request-head.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** An HTTP proxy on the way to a server. */
export interface HttpProxy {
  host: string;
  port: number;
  isSecure: boolean;
  /** What it wants to know of us. */
  authorization: string | undefined;
  /** By which users know it, without a password. */
  label: string;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
loopback.addAddress('::1', 'ipv6');

/**
 * The proxy that the environment names for this address; undefined where it is reached directly. As programs do it: `http_proxy`,
 * `https_proxy` and `all_proxy`, in small letters or capitals, and `no_proxy` for what has none. This machine has none either.
 */
export function proxyFor(url: URL, environment: Environment): HttpProxy | undefined {
  const own = `${url.protocol.slice(0, -1)}_proxy`;
  const [name, value] = firstOf(environment, [own, 'all_proxy']);
  if (value === undefined) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (isThisMachine(host)) return undefined;
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  const [, without = ''] = firstOf(environment, ['no_proxy']);
  if (without.split(/[\s,]+/).some((entry) => fits(entry.toLowerCase(), host, port))) return undefined;
  return read(name, value);
}

/** The first of them that says something. */
function firstOf(environment: Environment, names: readonly string[]): [string, string | undefined] {
  for (const name of names.flatMap((small) => [small, small.toUpperCase()])) {
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

/** An entry of `no_proxy`: everything, a name with all below it, an address, or a range of addresses; with a port or without. */
function fits(entry: string, host: string, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  if (entry.includes('/')) return isInRange(entry, host);
  const [, name = entry, only] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  if (only !== undefined && only !== port) return false;
  const plain = name.replace(/^\[|\]$/g, '').replace(/^\*?\./, '');
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

/** Most programs take an address of a proxy without a scheme, and so do we. */
function parse(value: string): URL | null {
  return URL.parse(value.includes('://') ? value : `http://${value}`);
}

function read(name: string, value: string): HttpProxy {
  const url = parse(value);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new SwitchboardError(
      'invalid_config',
      `The variable ${name} does not name a proxy that can be used: write http://host:port or https://host:port.`,
    );
  }
  const isSecure = url.protocol === 'https:';
  const port = Number(url.port) || (isSecure ? 443 : 80);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    host,
    port,
    isSecure,
    authorization: basicCredentials(url),
    label: `${url.protocol}//${url.hostname}:${port}`,
  };
}

/** The passwords of the proxies that the environment names, as they are written there and as they are. */
export function proxyPasswords(environment: Environment): string[] {
  const names = ['http_proxy', 'https_proxy', 'all_proxy'].flatMap((name) => [name, name.toUpperCase()]);
  const passwords = names.flatMap((name) => {
    const value = environment[name]?.trim() ?? '';
    const { password = '' } = parse(value) ?? {};
    return [writtenPassword(value), password, decoded(password)];
  });
  return [...new Set(passwords)].filter((password) => password.length >= SHORTEST_MASKED);
}

/** Reading an address encodes some of its characters, and in a log it stands as it was written. */
function writtenPassword(value: string): string {
  return /^(?:[^/]*:\/\/)?[^/:@]*:([^/?#]*)@/.exec(value)?.[1] ?? '';
}

/** Shorter ones stand in too many other texts. */
const SHORTEST_MASKED = 8;

/** A request to a server without TLS, as a proxy wants it: with the whole address of the server, and who we are. */
export function throughProxy(requestHead: string, url: URL, { authorization }: HttpProxy): string {
  const target = requestHead.indexOf(' ') + 1;
  const headers = requestHead.indexOf('\r\n') + 2;
  const line = authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`;
  return `${requestHead.slice(0, target)}http://${url.host}${requestHead.slice(target, headers)}${line}${requestHead.slice(headers)}`;
}

const MAX_HEAD_BYTES = 16 * 1024;

/** Connects to a proxy. */
export function connectToProxy({ host, port, isSecure }: HttpProxy): Socket {
  const options = { host, port, noDelay: true };
  if (!isSecure) return connectTcp(options);
  return connectTls({
    ...options,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
  });
}

/**
 * Has the proxy at the other end of a connection connect to a server. Whatever comes on the connection after that is from there.
 * Fails where the proxy refuses, or says something else.
 */
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
      if (head.length > MAX_HEAD_BYTES) settle(new Error('what it says cannot be understood'));
      return;
    }
    const [, status, reason = ''] = /^HTTP\/1\.[01] (\d{3}) ?([^\r\n]*)/.exec(head) ?? [];
    if (status === undefined) settle(new Error('what it says cannot be understood'));
    else if (!status.startsWith('2')) settle(new Error(`it answered HTTP ${status} ${reason}`.trimEnd()));
    // Nobody speaks before us: TLS begins with the client.
    else if (head.length > end + 4) settle(new Error('it said more than it was asked'));
    else settle();
  };
  socket.on('data', read);
}
