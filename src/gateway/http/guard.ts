import type { IncomingMessage, ServerResponse } from 'node:http';
import { SwitchboardError } from '../../errors.ts';

const exposed = 'Mcp-Session-Id, ETag, Location, Retry-After, WWW-Authenticate';
const ownNames = ['127.0.0.1', 'localhost', '[::1]'];
/** If a header is repeated, a proxy may use another value than we do. */
const singleHeaders = ['authorization', 'content-type', 'host', 'mcp-session-id', 'origin', 'sec-fetch-site'];
/** Grouped by length, because every header of every request is looked up. */
const singlesByLength: { name: string; bit: number }[][] = [];
for (const [index, name] of singleHeaders.entries()) {
  singlesByLength[name.length] = [...(singlesByLength[name.length] ?? []), { name, bit: 1 << index }];
}

interface GuardSettings {
  allowedOrigins: readonly string[];
  /** The address that clients use, through a proxy or not. */
  publicUrl?: string | undefined;
}

/**
 * Keeps web pages in the user's browser away: direct requests (Origin, Sec-Fetch-Site), and DNS rebinding (Host). Pages of
 * the configured origins are allowed, and so are requests to these origins, through a tunnel.
 */
export class Guard {
  private readonly configured: ReadonlySet<string>;
  private hosts: ReadonlySet<string> = new Set();
  private origins: ReadonlySet<string> = new Set();

  constructor({ allowedOrigins, publicUrl }: GuardSettings) {
    const own = publicUrl === undefined ? [] : [new URL(publicUrl).origin];
    this.configured = new Set([...allowedOrigins, ...own]);
  }

  listensOn(port: number, scheme: 'http' | 'https'): void {
    const origins = [
      ...ownNames.map((name) => new URL(`${scheme}://${name}:${port}`).origin),
      ...this.configured,
    ];
    this.origins = new Set(origins);
    // The origin of a browser extension has no address.
    this.hosts = new Set(origins.filter((origin) => origin.startsWith('http')).flatMap(hostsOf));
  }

  check({ headers, rawHeaders }: IncomingMessage): void {
    refuseRepeated(rawHeaders);
    const { host = '', origin, 'sec-fetch-site': site } = headers;
    if (!this.hosts.has(host) && !this.hosts.has(host.toLowerCase())) {
      throw new SwitchboardError(
        'forbidden_origin',
        `The Host header "${host}" is not an address of this server. To allow it, for example for a tunnel, add its origin, such as http://localhost:8080, to the setting allowedOrigins.`,
      );
    }
    if (origin !== undefined && !this.origins.has(origin)) throw forbidden(`The Origin "${origin}"`);
    const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none';
    if (isForeign && (origin === undefined || !this.configured.has(origin))) {
      throw forbidden('A page of another origin');
    }
  }

  /** Lets pages of the configured origins read responses (CORS). True if the request was a preflight. */
  answerBrowser({ headers, method }: IncomingMessage, response: ServerResponse): boolean {
    const { origin } = headers;
    if (origin === undefined || !this.configured.has(origin)) return false;
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-expose-headers', exposed);
    response.setHeader('vary', 'Origin');
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return false;
    const wanted = headers['access-control-request-headers'];
    response.setHeader('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE');
    if (typeof wanted === 'string') response.setHeader('access-control-allow-headers', wanted);
    response.setHeader('access-control-max-age', '600');
    response.writeHead(204).end();
    return true;
  }
}

/** Some clients name the usual port too. */
function hostsOf(origin: string): string[] {
  const { host, port, protocol } = new URL(origin);
  return port === '' ? [host, `${host}:${protocol === 'http:' ? 80 : 443}`] : [host];
}

function refuseRepeated(rawHeaders: readonly string[]): void {
  let seen = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const bit = singleBit(rawHeaders[index]!);
    if ((seen & bit) !== 0) {
      throw new SwitchboardError('repeated_header', `The header "${rawHeaders[index]}" is repeated.`);
    }
    seen |= bit;
  }
}

function singleBit(header: string): number {
  const candidates = singlesByLength[header.length];
  if (candidates === undefined) return 0;
  for (const { name, bit } of candidates) {
    if (header === name) return bit;
    const isAlike = (header.charCodeAt(0) | 0x20) === name.charCodeAt(0);
    if (isAlike && header.toLowerCase() === name) return bit;
  }
  return 0;
}

function forbidden(who: string): SwitchboardError {
  return new SwitchboardError(
    'forbidden_origin',
    `${who} is not allowed. To allow it, add it to the setting allowedOrigins.`,
  );
}
