import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Configuration, Settings } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { isLoopback } from './address.ts';
import type { AppOptions } from './options.ts';

export type AuthenticatedSettings = Settings & { auth: boolean; publicUrl: string | undefined };

/** How requests are authenticated: the options of the command line, else the configuration. Throws if it is not safe. */
export function authenticationOf(
  { settings }: Configuration,
  options: AppOptions,
  warn: (message: string) => void,
): AuthenticatedSettings {
  const publicUrl = options.publicUrl ?? settings.publicUrl;
  const given = settings.tls && {
    cert: resolve(dirname(options.configPath), settings.tls.cert),
    key: resolve(dirname(options.configPath), settings.tls.key),
  };
  const tls = options.tls ?? given;
  const trustedProxies = options.trustedProxies ?? settings.trustedProxies;
  const auth = options.auth ?? settings.auth ?? publicUrl !== undefined;
  const { host, port } = options;
  if (!isLoopback(host) && (!auth || publicUrl === undefined)) throw exposed(host, port);
  if (auth && options.database.mode === 'none')
    throw invalid('Authentication needs a database, for keys: start without --no-database.');
  if (auth && settings.localAccess === 'everyone')
    throw invalid('The setting "localAccess": "everyone" contradicts authentication: remove it.');
  if (tls !== undefined && publicUrl?.startsWith('http:'))
    throw invalid('With a certificate, the public address must begin with https://.');
  if (trustedProxies.length === 0) {
    if (!isLoopback(host) && tls === undefined)
      warn(
        `Keys travel unencrypted to ${host}: set --tls-cert and --tls-key, or put a proxy with TLS in front and name it with --trusted-proxy.`,
      );
    const publicPort = publicUrl === undefined ? port : portOf(publicUrl);
    if (publicPort !== port && port !== 0)
      warn(
        `Clients will use ${publicUrl}, which means port ${publicPort}, but Switchboard listens on port ${port}: use --port ${publicPort}, or put a proxy in front and name it with --trusted-proxy.`,
      );
  }
  return { ...settings, auth, publicUrl: publicUrl?.replace(/\/$/, ''), tls, trustedProxies };
}

/** An edit that looks as if it took effect must not leave Switchboard open. */
export function warnOfPending(
  edited: Configuration,
  options: AppOptions,
  current: AuthenticatedSettings,
  warn: (message: string) => void,
): void {
  try {
    const next = authenticationOf(edited, options, () => {});
    const names = ['auth', 'publicUrl', 'tls', 'trustedProxies'] as const;
    const changed = names.filter((name) => !isDeepStrictEqual(next[name], current[name]));
    if (changed.length === 0) return;
    const until = current.auth ? 'the previous values hold' : 'no key is asked for';
    warn(`These settings take effect at the next start (until then ${until}): ${changed.join(', ')}.`);
  } catch (error) {
    warn(`The next start will fail: ${(error as Error).message}`);
  }
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

function exposed(host: string, port: number): SwitchboardError {
  return invalid(
    [
      `Switchboard does not listen on ${host} without authentication. To open it to a network, name the address that clients will use:`,
      `  switchboard up --host ${host} --port ${port} --public-url https://sb.example:${port} --tls-cert cert.pem --tls-key key.pem`,
      'Every request then needs a key:',
      '  switchboard key add my-client --project default --role caller',
      'For yourself, a tunnel to 127.0.0.1 needs neither: ssh -L 7400:127.0.0.1:7400 …',
    ].join('\n'),
  );
}

function invalid(message: string): SwitchboardError {
  return new SwitchboardError('invalid_config', message);
}
