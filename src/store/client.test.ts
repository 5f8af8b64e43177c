import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { addressOf } from './client.ts';

describe('the address of a database', () => {
  it.each([
    ['postgres://user:hunter2@db.example:6543/main', 'db.example:6543/main'],
    ['postgresql://user:hunter2@db.example/main', 'db.example:5432/main'],
    ['postgres://user:hunter2@[::1]:5432/main', '[::1]:5432/main'],
    ['postgres://user@%2Fvar%2Frun%2Fpostgresql/main', '/var/run/postgresql/main'],
    ['postgres:///main?host=/tmp', '/tmp/main'],
    ['postgres://user:hunter2@db.example/main?sslmode=require', 'db.example:5432/main'],
  ])('%s is shown as %s', (url, label) => {
    expect(addressOf(url).label).toBe(label);
  });

  it('interprets sslmode like other programs', () => {
    const ssl = (mode: string) =>
      new pg.Client(addressOf(`postgres://user@db.example/main?sslmode=${mode}`).config as pg.ClientConfig)
        .ssl;
    expect(ssl('disable')).toBe(false);
    expect(ssl('require')).toEqual({ rejectUnauthorized: false });
    expect(ssl('verify-full')).toEqual({});
  });

  it.each(['', 'hunter2', 'mysql://root:hunter2@db/main', 'postgres://user:hunter2@db:port/main'])(
    'is rejected without showing the password if it is invalid: %j',
    (url) => {
      expect(() => addressOf(url)).toThrow(/^DATABASE_URL is not the URL of a PostgreSQL database/);
      expect(() => addressOf(url)).not.toThrow(/hunter2/);
    },
  );
});
