import { readFileSync } from 'node:fs';
import type { RequestListener, Server, ServerOptions } from 'node:http';
import type { SecureContextOptions } from 'node:tls';
import { watchFile } from '../../config/watch.ts';
import { SwitchboardError } from '../../errors.ts';

interface Reloadable {
  setSecureContext(options: SecureContextOptions): void;
}

/** The two files are replaced one after the other. */
const PAIR_MS = 1_000;
/** The watches do not see a link change further up in the path. */
const POLL_MS = 60_000;

/** A certificate and its key, read again when the files change. */
export class Certificate {
  private readonly paths: { cert: string; key: string };
  private readonly warn: (message: string) => void;
  private current: SecureContextOptions;
  /** Of the files as they are now, if somebody was warned of it. */
  private problem: string | undefined;
  private retry: NodeJS.Timeout | undefined;
  private watches: { close(): void }[] = [];
  private timer: NodeJS.Timeout | undefined;

  /** Throws if the files cannot be used. */
  constructor(paths: { cert: string; key: string }, warn: (message: string) => void) {
    this.paths = paths;
    this.warn = warn;
    this.current = this.read();
  }

  get options(): SecureContextOptions {
    return this.current;
  }

  /** New connections get the new certificate. If the files do not fit, the previous one stays in effect. */
  follow(server: Reloadable): void {
    const check = () => this.check(server);
    this.watches = [this.paths.cert, this.paths.key].map((path) => watchFile(path, check));
    this.timer = setInterval(check, POLL_MS).unref();
  }

  close(): void {
    clearInterval(this.timer);
    clearTimeout(this.retry);
    for (const watch of this.watches) watch.close();
  }

  private check(server: Reloadable, isRetry = false): void {
    try {
      const next = this.read();
      this.problem = undefined;
      if (next.cert === this.current.cert && next.key === this.current.key) return;
      server.setSecureContext(next);
      this.current = next;
    } catch (error) {
      const { message } = error as Error;
      if (message === this.problem) return;
      if (!isRetry) {
        this.retry ??= setTimeout(() => {
          this.retry = undefined;
          this.check(server, true);
        }, PAIR_MS).unref();
        return;
      }
      this.problem = message;
      this.warn(`${message} The previous certificate stays in effect.`);
    }
  }

  private read(): SecureContextOptions {
    const { cert, key } = this.paths;
    const options = {
      cert: readPem(cert, 'certificate'),
      key: readPem(key, 'key'),
      minVersion: 'TLSv1.2' as const,
    };
    try {
      process.getBuiltinModule('node:tls').createSecureContext(options);
    } catch (error) {
      throw new SwitchboardError(
        'invalid_config',
        `The certificate ${cert} and the key ${key} cannot be used: ${(error as Error).message}.`,
        { cause: error },
      );
    }
    return options;
  }
}

/** HTTPS with a certificate, else HTTP. */
export function createHttpServer(
  options: ServerOptions,
  certificate: Certificate | undefined,
  handle: RequestListener,
): Server {
  // An `import` would also load its browser APIs: 16 MB.
  if (certificate === undefined) return process.getBuiltinModule('node:http').createServer(options, handle);
  const handshakeTimeout = options.headersTimeout;
  const server = process
    .getBuiltinModule('node:https')
    .createServer(
      { ...options, ...certificate.options, ...(handshakeTimeout === undefined ? {} : { handshakeTimeout }) },
      handle,
    );
  certificate.follow(server);
  return server;
}

function readPem(path: string, what: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new SwitchboardError(
      'invalid_config',
      `The ${what} of TLS cannot be read: ${(error as Error).message}.`,
      { cause: error },
    );
  }
  // Node ignores an empty one, and serves none.
  if (text.includes('-----BEGIN ')) return text;
  throw new SwitchboardError('invalid_config', `The ${what} of TLS, ${path}, is not in PEM format.`);
}
