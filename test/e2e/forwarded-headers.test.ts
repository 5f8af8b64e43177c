import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { addKey, tokenHeader } from '../helpers/with-key.ts';

const forwarded: Record<string, string>[] = [
  { 'x-forwarded-for': '203.0.113.9' },
  { forwarded: 'for=203.0.113.9' },
  { 'x-forwarded-for': '198.51.100.7, 203.0.113.9' },
  { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=198.51.100.7' },
];
const others: Record<string, string>[] = [{ 'x-real-ip': '203.0.113.9' }, { via: '1.1 proxy' }];

let open: RunningSwitchboard;
let behind: RunningSwitchboard;

setUp(async (use) => {
  const start = (...args: string[]) =>
    startSwitchboard({}, {}, { args: ['--auth', ...args], database: 'shared' });
  [open, behind] = await Promise.all([start(), start('--trusted-proxy', '127.0.0.1')]);
  use(open);
  use(behind);
});

function whoami({ baseUrl }: RunningSwitchboard, headers: Record<string, string>) {
  return exchange(`${baseUrl}/api/v1/whoami`, { method: 'GET', headers });
}

async function keyOf(switchboard: RunningSwitchboard, name: string) {
  return { authorization: `Bearer ${await addKey(switchboard, { name, role: 'viewer' })}` };
}

describe('the headers of proxies', () => {
  it('change nothing if the peer is no trusted proxy', async () => {
    const key = await keyOf(open, 'direct');
    const plain = await whoami(open, key);
    expect(plain).toMatchObject({ status: 200, json: { name: 'direct', address: '127.0.0.1' } });
    for (const headers of [...forwarded, ...others]) {
      expect((await whoami(open, { ...key, ...headers })).json).toEqual(plain.json);
    }
  });

  it('name the client if the peer is one', async () => {
    const key = await keyOf(behind, 'behind');
    for (const headers of forwarded) {
      const answer = await whoami(behind, { ...key, ...headers });
      expect(answer.json).toMatchObject({ name: 'behind', address: '203.0.113.9' });
    }
    for (const headers of [{}, ...others]) {
      expect((await whoami(behind, { ...key, ...headers })).json).toMatchObject({ address: '127.0.0.1' });
    }
  });

  it('make the token of the machine invalid, whether the peer is trusted or not', async () => {
    for (const switchboard of [open, behind]) {
      const token = await tokenHeader(switchboard.home);
      expect(await whoami(switchboard, token)).toMatchObject({ status: 200, json: { kind: 'local' } });
      for (const headers of [...forwarded, ...others, { 'x-forwarded-for': '127.0.0.1' }]) {
        expect((await whoami(switchboard, { ...token, ...headers })).status).toBe(401);
      }
    }
  });

  it('belong to one request, not to its connection', async () => {
    const key = await keyOf(behind, 'shared');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const addressOf = async (client: string) => {
      const headers = { ...key, 'x-forwarded-for': client };
      const asked = request(`${behind.baseUrl}/api/v1/whoami`, { agent, headers }).end();
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      return ((await json(response)) as { address: string }).address;
    };
    expect(await addressOf('203.0.113.1')).toBe('203.0.113.1');
    expect(await addressOf('203.0.113.2')).toBe('203.0.113.2');
    agent.destroy();
  });
});
