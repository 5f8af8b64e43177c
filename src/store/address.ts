import pg from 'pg';
import { SwitchboardError } from '../errors.ts';

/** Where a database is, and how it is called in messages: without user and password. */
export interface Address {
  config: pg.ClientConfig;
  label: string;
}

export function addressOf(url: string): Address {
  const config = { connectionString: withUsualMeaning(url) };
  try {
    if (!/^(postgres|postgresql|socket):/.test(url)) throw new Error('it does not begin with postgres://');
    const { host, port, database } = new pg.Client(config);
    if (!Number.isInteger(port)) throw new Error('its port is not a number');
    const place = host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
    return { config, label: `${place}/${database}` };
  } catch (error) {
    throw new SwitchboardError(
      'invalid_config',
      `DATABASE_URL is not an address of a PostgreSQL database: ${(error as Error).message}. It looks like postgres://user:password@host:5432/database`,
    );
  }
}

/** `pg` takes `require` for `verify-full`; everywhere else it means: encrypted, whoever signed the certificate. */
function withUsualMeaning(url: string): string {
  const isOurs = /[?&]sslmode=(prefer|require|verify-ca)(&|$)/.test(url) && !url.includes('uselibpqcompat=');
  return isOurs ? `${url}&uselibpqcompat=true` : url;
}
