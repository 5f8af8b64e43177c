import { once } from 'node:events';
import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { exchangeAsOther, requireOtherUser } from '../helpers/other-user.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { addKey } from '../helpers/with-key.ts';

describe('with authentication, connections without a key', () => {
  beforeEach((test) => requireOtherUser(test));

  it('give way to new ones, so that they do not keep clients with keys out', async () => {
    await using small = await startSwitchboard(
      {},
      { maxConnections: 4 },
      { args: ['--auth'], database: 'shared' },
    );
    const authorization = `Bearer ${await addKey(small, { name: 'far', role: 'viewer' })}`;
    const { host, port } = new URL(small.baseUrl);
    const strangers = [];
    for (let count = 0; count < 2; count++) {
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(`GET /api/v1/whoami HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer wrong\r\n\r\n`);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(answer.toString()).toMatch(/^HTTP\/1.1 401 /);
      strangers.push(socket.resume());
    }
    const first = once(strangers[0]!, 'close');
    const whoami = () =>
      exchangeAsOther(`${small.baseUrl}/api/v1/whoami`, { method: 'GET', headers: { authorization } });
    // New ones are left alone for a second.
    for (let status = 503; status === 503; ) ({ status } = await whoami());
    expect((await whoami()).status).toBe(200);
    await first;
    for (const socket of strangers) socket.destroy();
  });
});
