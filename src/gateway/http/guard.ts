import type { IncomingMessage, ServerResponse } from 'node:http';
import { SwitchboardError } from '../../errors.ts';

const ownNames = ['127.0.0.1', 'localhost', '[::1]'];
/** Of two of the same, others in between may go by another one than we do. */
const singleHeaders = ['authorization', 'content-type', 'host', 'mcp-session-id', 'origin', 'sec-fetch-site'];
/** By their lengths, because this is asked for every header of every request. */
const singlesByLength: { name: string; bit: number }[][] = [];
for (const [index, name] of singleHeaders.entries()) {
  singlesByLength[name.length] = [...(singlesByLength[name.length] ?? []), { name, bit: 1 << index }];
}

/**
 * A web page must not reach us through the user's browser: neither directly (Origin, Sec-Fetch-Site) nor by making its
 * own name point at this machine (Host). Pages of the configured origins may, and we may be reached under those, through
 * a tunnel.
 */
export class Guard {
  private readonly configured: ReadonlySet<string>;
  private hosts: ReadonlySet<string> = new Set();
  private origins: ReadonlySet<string> = new Set();

  constructor(allowedOrigins: readonly string[]) {
    this.configured = new Set(allowedOrigins);
  }

  /** The port is part of our name: whoever listens at another one is somebody else. */
  listensOn(port: number): void {
    const origins = [...ownNames.map((name) => new URL(`http://${name}:${port}`).origin), ...this.configured];
    this.origins = new Set(origins);
    const explicit = port === 80 ? ownNames.map((name) => `${name}:80`) : [];
    // An extension of a browser has an origin, but is no address.
    const addresses = origins
      .filter((origin) => origin.startsWith('http'))
      .map((origin) => new URL(origin).host);
    this.hosts = new Set([...addresses, ...explicit]);
  }

  check({ headers, rawHeaders }: IncomingMessage): void {
    refuseRepeated(rawHeaders);
    const { host = '', origin, 'sec-fetch-site': site } = headers;
    if (!this.hosts.has(host) && !this.hosts.has(host.toLowerCase())) {
      throw new SwitchboardError(
        'forbidden_origin',
        `The Host header "${host}" is not an address of ours. Where it is to be, as with a tunnel, name its origin, such as http://localhost:8080, in the setting allowedOrigins.`,
      );
    }
    if (origin !== undefined && !this.origins.has(origin)) throw forbidden(`The Origin "${origin}"`);
    const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none';
    if (isForeign && (origin === undefined || !this.configured.has(origin))) {
      throw forbidden('A page of another origin');
    }
  }

  /** Lets pages of configured origins read our answers. True where the browser only asked whether they may. */
  answerBrowser({ headers, method }: IncomingMessage, response: ServerResponse): boolean {
    const { origin } = headers;
    if (origin === undefined || !this.configured.has(origin)) return false;
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-expose-headers', 'Mcp-Session-Id, ETag, Location, WWW-Authenticate');
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

function refuseRepeated(rawHeaders: readonly string[]): void {
  let seen = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const bit = singleBit(rawHeaders[index]!);
    if ((seen & bit) !== 0) {
      throw new SwitchboardError(
        'repeated_header',
        `The header "${rawHeaders[index]}" is there more than once.`,
      );
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
    `${who} is not allowed. Where it is to be, name it in the setting allowedOrigins.`,
  );
}
