import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ServerTest } from '../../src/api/views.ts';
import { exchange } from '../helpers/raw-http.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { Site } from '../projects/site.ts';

const rotations = 20;
const headers = { 'content-type': 'application/json' };

it('servers that connect during a key rotation get their secrets', async () => {
  await using switchboard = await startSwitchboard({}, {}, { database: 'shared' });
  const ask = (method: string, path: string, body?: object) =>
    exchange(`${switchboard.baseUrl}/api/v1${path}`, { method, headers, body });
  await ask('PUT', '/projects/default/secrets/TOKEN', { value: 'a secret' });
  // Nothing listens there: an attempt to connect proves that the secret was available.
  const config = { url: 'http://127.0.0.1:1/', headers: { authorization: `\${TOKEN}` } };
  await ask('POST', '/projects/default/servers', { name: 'remote', transport: 'http', config });

  let isOver = false;
  const connect = async () => {
    const errors = new Set<string | null>();
    while (!isOver) {
      const { text } = await ask('POST', '/projects/default/servers/remote/test');
      errors.add((JSON.parse(text) as ServerTest).error);
    }
    return errors;
  };
  const connecting = Promise.all([connect(), connect()]);
  for (let count = 0; count < rotations; count++) {
    expect((await ask('POST', '/secrets/rotate')).status).toBe(200);
  }
  isOver = true;
  const [first, second] = await connecting;
  const others = [...first.union(second)].filter((error) => !error?.includes('ECONNREFUSED'));
  expect(others).toEqual([]);
});

it.runIf(process.platform === 'linux')(
  'a failed write leaves the old key and the encrypted secrets unchanged, and says why',
  async () => {
    await using site = await Site.start('server');
    await site.done('PUT /projects/default/secrets/TOKEN', { value: 'a secret' });
    const rows = () => site.query("SELECT key_id, encode(ciphertext, 'hex') AS sealed FROM kb.secrets");
    const files = () => readdirSync(site.home).filter((name) => name.startsWith('secret.key'));
    const key = () => readFileSync(join(site.home, 'secret.key'), 'utf8');
    const before = { rows: await rows(), key: key() };
    const limitFiles = (bytes: string) =>
      execFileSync('prlimit', [`--pid=${site.switchboard.process.pid}`, `--fsize=${bytes}:unlimited`]);

    limitFiles('0');
    const { status, body } = await site.ask('POST /secrets/rotate');
    limitFiles('unlimited');
    expect(status).toBe(500);
    expect(body.error).toMatchObject({
      code: 'key_file_failed',
      message: expect.stringMatching(/cannot be written: EFBIG.* The file and the secrets are unchanged/),
    });
    expect(files()).toEqual(['secret.key']);
    expect({ rows: await rows(), key: key() }).toEqual(before);
    expect((await site.ask('POST /secrets/rotate')).status).toBe(200);
    expect(key()).not.toBe(before.key);
  },
);
