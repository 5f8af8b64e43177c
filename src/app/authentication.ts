import { dirname, resolve } from 'node:path';
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
  const { host } = options;
  if (!isLoopback(host) && (!auth || publicUrl === undefined)) throw exposed(host);
  if (auth && options.database.mode === 'none')
    throw invalid('Authentication needs a database, for keys: start without --no-database.');
  if (auth && settings.localAccess === 'everyone')
    throw invalid('The setting "localAccess": "everyone" contradicts authentication: remove it.');
  if (!isLoopback(host) && tls === undefined && trustedProxies.length === 0)
    warn(
      `Keys travel unencrypted to ${host}: set --tls-cert and --tls-key, or put a proxy with TLS in front and name it with --trusted-proxy.`,
    );
  return { ...settings, auth, publicUrl: publicUrl?.replace(/\/$/, ''), tls, trustedProxies };
}

function exposed(host: string): SwitchboardError {
  return invalid(
    [
      `Switchboard does not listen on ${host} without authentication. To open it to a network, name the address that clients will use:`,
      `  switchboard up --host ${host} --public-url https://sb.example --tls-cert cert.pem --tls-key key.pem`,
      'Every request then needs a key:',
      '  switchboard key add my-client --project default --role caller',
      'For yourself, a tunnel to 127.0.0.1 needs neither: ssh -L 7400:127.0.0.1:7400 …',
    ].join('\n'),
  );
}

function invalid(message: string): SwitchboardError {
  return new SwitchboardError('invalid_config', message);
}
