import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { exchange, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** The next event, not a past one. */
async function following<Result>(
  { events, event }: RunningSwitchboard,
  name: string,
  act: () => Promise<Result>,
): Promise<Record<string, unknown>> {
  const past = new Set(events);
  await act();
  return event((candidate) => candidate.event === name && !past.has(candidate));
}

describe('an edit of the configuration', () => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let session: RawSession;
  const one = () => fixtureServer('toolbox', witness.env('one'));
  const two = () => fixtureServer('toolbox', witness.env('two'));
  const always = { naming: 'always' };
  const configure = (mcpServers: object, settings: object = always) =>
    following(switchboard, 'configuration', () =>
      // An unchanged file is no edit.
      switchboard.configure(mcpServers, settings, { edit: edits++ }),
    );
  let edits = 1;

  setUp(async (use) => {
    witness = use(await Witness.open());
    switchboard = use(await startSwitchboard({ one: one() }, always));
    session = await RawSession.open(switchboard.url);
  });

  it('adds and removes servers, and keeps the processes of the others', async () => {
    const pid = await session.callText('one__pid');
    expect(await configure({ one: one(), two: two() })).toMatchObject({ started: ['two'], stopped: [] });
    const ofTwo = await session.callText('two__pid');
    expect(await configure({ one: one() })).toMatchObject({ started: [], stopped: ['two'] });
    await witness.sees('two', 'end', (sighting) => String(sighting.pid) === ofTwo);
    expect(await session.call('two__pid')).toMatchObject({
      error: { message: 'Unknown tool: two__pid. Did you mean one__pid?' },
    });
    expect(await session.callText('one__pid')).toBe(pid);
  });

  it('restarts only the changed server', async () => {
    await configure({ one: one(), two: two() });
    const pids = [await session.callText('one__pid'), await session.callText('two__pid')];
    const changed = { ...two(), args: [...two().args, '--verbose'] };
    expect(await configure({ one: one(), two: changed })).toMatchObject({
      started: ['two'],
      stopped: ['two'],
    });
    expect(await session.callText('one__pid')).toBe(pids[0]);
    expect(await session.callText('two__pid')).not.toBe(pids[1]);
  });

  it('that only reorders keys changes nothing', async () => {
    const pid = await session.callText('one__pid');
    const { command, args, env } = one();
    await configure({ one: { env, args, command } });
    expect(await session.callText('one__pid')).toBe(pid);
  });

  it('disables and enables a server', async () => {
    await configure({ one: one(), two: { ...two(), enabled: false } });
    expect((await session.toolNames()).some((name) => name.startsWith('two__'))).toBe(false);
    await configure({ one: one(), two: { ...two(), enabled: true } });
    expect(await session.toolNames()).toContain('two__pid');
    await configure({ one: one(), two: { ...two(), disabled: true } });
    expect(await session.call('two__pid')).toMatchObject({ error: { code: -32602 } });
  });

  it('of names notifies clients, and keeps the processes', async () => {
    await configure({ one: one() });
    const pid = await session.callText('one__pid');
    const stream = await session.listen();
    await configure({ one: one() }, { naming: 'on-conflict' });
    await stream.message(({ method }) => method === 'notifications/tools/list_changed');
    expect(await session.toolNames()).toContain('pid');
    expect(await session.callText('pid')).toBe(pid);
    await stream.cut();

    await configure({ one: { ...one(), prefix: 'uno' } }, { naming: 'always', separator: '-' });
    expect(await session.toolNames()).toContain('uno-pid');
  });

  it('that is invalid is reported, and changes nothing', async () => {
    await configure({ one: one() });
    const pid = await session.callText('one__pid');
    const broken = [
      ['{"mcpServers": {"one": ', 'not valid JSON'],
      ['{"mcpServers": {"one": {}}}', 'mcpServers.one: has neither "command"'],
      ['{"mcpServers": {}, "switchboard": {"naming": "sometimes"}}', 'switchboard.naming: must be one of'],
    ] as const;
    for (const [text, complaint] of broken) {
      const write = () => writeFile(switchboard.configPath, text);
      const { message } = await following(switchboard, 'warning', write);
      expect(message).toContain(switchboard.configPath);
      expect(message).toContain(complaint);
      expect(message).toContain('The previous configuration stays in effect.');
    }
    expect(await session.callText('one__pid')).toBe(pid);
  });

  it('may replace the file', async () => {
    const next = `${switchboard.configPath}.new`;
    await writeFile(next, JSON.stringify({ mcpServers: { one: one(), two: two() }, switchboard: always }));
    await following(switchboard, 'configuration', () => rename(next, switchboard.configPath));
    expect(await session.toolNames()).toContain('two__pid');
  });

  it('lets calls of a removed server finish, and rejects new ones', async () => {
    await configure({ one: one(), two: two() });
    const pid = await session.callText('two__pid');
    const stream = await session.openCall('two__wait', { order: 'finish' }, 'token');
    await stream.message(({ method }) => method === 'notifications/progress');
    await configure({ one: one() });
    expect(await session.call('two__echo')).toMatchObject({
      error: { message: 'Unknown tool: two__echo. Did you mean one__echo?' },
    });
    witness.tell('two', 'finish');
    await stream.ended;
    expect(stream.messages.at(-1)).toMatchObject({ result: { content: [{ text: 'waited' }] } });
    await witness.sees('two', 'end', (sighting) => String(sighting.pid) === pid);
  });

  it('lets calls of a changed server finish while the new process works', async () => {
    await configure({ one: one(), two: two() });
    const stream = await session.openCall('two__wait', { order: 'old' }, 'token');
    await stream.message(({ method }) => method === 'notifications/progress');
    const old = await session.callText('two__pid');
    await configure({ one: one(), two: fixtureServer('toolbox', witness.env('three')) });
    expect(await session.callText('two__pid')).not.toBe(old);
    witness.tell('two', 'old');
    await stream.ended;
    expect(stream.messages.at(-1)).toMatchObject({ result: { content: [{ text: 'waited' }] } });
  });

  it('does not keep a removed server for a cancelled call', async () => {
    await configure({ one: one(), two: two() });
    const pid = await session.callText('two__pid');
    const call = session.request(
      'tools/call',
      { name: 'two__wait', arguments: { order: 'never' } },
      'waiting',
    );
    const unanswered = expect(call).rejects.toThrow('HTTP 202');
    await witness.sees('two', 'tools/call', ({ params }) => JSON.stringify(params).includes('never'));
    await configure({ one: one() });
    await session.notify('notifications/cancelled', { requestId: 'waiting' });
    await witness.sees('two', 'end', (sighting) => String(sighting.pid) === pid);
    await unanswered;
  });
});

describe('variables', () => {
  it('are resolved when a server connects', async () => {
    const variables = {
      PLAIN: `\${SWITCHBOARD_TEST_TOKEN}`,
      PREFIXED: `Bearer \${env:SWITCHBOARD_TEST_TOKEN}`,
      DEFAULTED: `\${SWITCHBOARD_TEST_UNSET:-fallback}`,
      INPUT: `\${input:switchboard-test-id}`,
      UNTOUCHED: `$HOME \${} $(id)`,
    };
    await using switchboard = await startSwitchboard(
      { box: fixtureServer('toolbox', variables) },
      {},
      { env: { SWITCHBOARD_TEST_TOKEN: 'secret', switchboard_test_id: 'typed' } },
    );
    const session = await RawSession.open(switchboard.url);
    const seen = Object.keys(variables).map((name) => session.callText('environment', { name }));
    expect(await Promise.all(seen)).toEqual([
      'secret',
      'Bearer secret',
      'fallback',
      'typed',
      `$HOME \${} $(id)`,
    ]);
    expect(await session.callText('environment', { name: 'SWITCHBOARD_TEST_TOKEN' })).toBe('not set');
  });

  it('that are missing fail only their server, with both names in the error', async () => {
    await using switchboard = await startSwitchboard(
      {
        lost: fixtureServer('toolbox', { TOKEN: `\${SWITCHBOARD_TEST_UNSET}` }),
        box: fixtureServer('toolbox'),
      },
      { naming: 'always' },
    );
    const session = await RawSession.open(switchboard.url);
    expect(await session.toolNames()).toContain('box__pid');
    const { error } = await switchboard.event(({ name, state }) => name === 'lost' && state === 'failed');
    expect(error).toContain('the server "lost" needs the variable SWITCHBOARD_TEST_UNSET (in env.TOKEN)');
  });
});

describe('stopping', () => {
  it('does not wait for a handshake', async () => {
    await using witness = await Witness.open();
    const switchboard = await startSwitchboard(
      { silent: fixtureServer('never-responds', witness.env('silent')) },
      { startup: 'parallel' },
    );
    await witness.sees('silent', 'start');
    const exited = once(switchboard.process, 'exit');
    await switchboard.stop();
    expect(await exited).toEqual([0, null]);
    await witness.sees('silent', 'end');
  });

  it('ends a call in flight, and its server', async () => {
    await using witness = await Witness.open();
    const switchboard = await startSwitchboard({ box: fixtureServer('toolbox', witness.env('box')) });
    const session = await RawSession.open(switchboard.url);
    const call = session.call('wait');
    await witness.sees('box', 'waiting');
    await switchboard.stop();
    expect((await call).error?.message).toContain('Switchboard is stopping');
    await witness.sees('box', 'end');
    await expect(exchange(switchboard.url, { method: 'GET' })).rejects.toThrow('ECONNREFUSED');
  });
});
