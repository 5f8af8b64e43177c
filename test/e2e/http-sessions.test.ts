import { describe, expect, it } from 'vitest';
import { bothTypes, exchange, initialize, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

function statusOf(session: RawSession): Promise<number> {
  return session.post(ping).then(({ status }) => status);
}

describe('sessions', () => {
  it('end with DELETE, and so do their isolated servers', async () => {
    await using witness = await Witness.open();
    const box = { ...fixtureServer('toolbox', witness.env('box')), isolation: 'session' };
    await using switchboard = await startSwitchboard({ box });
    const session = await RawSession.open(switchboard.url);
    const pid = Number(await session.callText('pid'));
    expect((await session.end()).status).toBe(200);
    expect(await statusOf(session)).toBe(404);
    expect((await session.end()).status).toBe(404);
    await witness.sees('box', 'end', (sighting) => sighting.pid === pid);
  });

  it('expire when they are idle for too long', async () => {
    await using witness = await Witness.open();
    const box = { ...fixtureServer('toolbox', witness.env('box')), isolation: 'session' };
    await using switchboard = await startSwitchboard({ box }, { sessionIdleMs: 300, keepAliveMs: 50 });
    const listening = await RawSession.open(switchboard.url);
    const stream = await listening.listen();
    const silent = await RawSession.open(switchboard.url);
    const pid = Number(await silent.callText('pid'));
    // The exit of the isolated server shows that the session has ended.
    await witness.sees('box', 'end', (sighting) => sighting.pid === pid);
    expect(await statusOf(silent)).toBe(404);
    expect(await statusOf(listening)).toBe(200);
    await stream.cut();
  });

  it('make room for new ones, the longest idle first, but never while in use', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      { box: fixtureServer('toolbox', witness.env('box')) },
      { maxSessions: 3 },
    );
    const open = () => RawSession.open(switchboard.url);
    const listening = await open();
    const stream = await listening.listen();
    const idle = await open();
    const calling = await open();
    const call = calling.callText('wait');
    await witness.sees('box', 'waiting');

    const next = await open();
    expect(await statusOf(idle)).toBe(404);
    expect(await statusOf(next)).toBe(200);
    const nextStream = await next.listen();

    const headers = { 'content-type': 'application/json', accept: bothTypes };
    const refused = await exchange(switchboard.url, { headers, body: initialize('2025-11-25', 'late') });
    expect(refused.status).toBe(503);
    expect(refused.json).toMatchObject({
      id: 'late',
      error: { message: expect.stringContaining('maxSessions') },
    });

    witness.tell('box', 'go');
    expect(await call).toBe('waited');
    await open();
    expect(await statusOf(calling)).toBe(404);
    await stream.cut();
    await nextStream.cut();
  });

  it('cannot be reached over another transport', async () => {
    await using switchboard = await startSwitchboard({});
    const session = await RawSession.open(switchboard.url);
    const answer = await exchange(`${switchboard.baseUrl}/messages?sessionId=${session.id}`, {
      headers: { 'content-type': 'application/json' },
      body: ping,
    });
    expect(answer.status).toBe(404);
  });
});
