import { describe, expect, it } from 'vitest';
import { calls, resultsIn, says } from '../agent/messages-api.ts';
import { openScene } from '../agent/scene.ts';
import { runCli } from '../helpers/cli.ts';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { startServer } from './servers.ts';

const worker = fixtureServer('eras/binds-state-to-process');
const nobody = 'needs input before it can respond, and there is no client to ask';

describe('an agent with modern servers', () => {
  it('calls their tools over stdio', async () => {
    const script = [calls({ name: 'echo', input: { text: 'soup' } }), says('It is soup.')];
    await using scene = await openScene(script, () => ({ servers: { box: fixtureServer('eras/modern') } }));
    expect((await scene.agent.chat('what is it?')).text).toBe('It is soup.');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { content: [{ type: 'text', text: '{"text":"soup"}' }] },
    ]);
  });

  it('calls their tools over HTTP', async () => {
    await using server = await startServer('modern', 'http', {});
    const { target } = server;
    const script = [calls({ name: 'echo', input: { text: 'soup' } }), says('It is soup.')];
    await using scene = await openScene(script, () => ({ servers: { box: target } }));
    expect((await scene.agent.chat('what is it?')).text).toBe('It is soup.');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { content: [{ type: 'text', text: '{"text":"soup"}' }] },
    ]);
  });

  it('gets an error if a tool asks for input', async () => {
    const script = [calls({ name: 'ask' }), says('I see.')];
    await using scene = await openScene(script, () => ({ servers: { worker } }));
    await scene.agent.chat('ask');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { is_error: true, content: [{ type: 'text', text: expect.stringContaining(nobody) }] },
    ]);
  });

  it('gets an error if a tool requires a client that accepts input requests', async () => {
    const script = [calls({ name: 'ask_name' }), says('I see.')];
    await using scene = await openScene(script, () => ({ servers: { box: fixtureServer('eras/modern') } }));
    await scene.agent.chat('ask');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { is_error: true, content: [{ type: 'text', text: expect.stringMatching(/elicitation/i) }] },
    ]);
  });
});

describe('a modern server', () => {
  let switchboard: RunningSwitchboard;
  setUp(async (use) => {
    switchboard = use(
      await startSwitchboard({ box: fixtureServer('eras/modern'), worker }, {}, { database: 'shared' }),
    );
  });
  const run = (...words: string[]) => runCli([...words, '--url', switchboard.baseUrl]);

  it('returns results to `switchboard call`', async () => {
    const { code, stdout, stderr } = await run('call', 'echo', 'text=soup');
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '{"text":"soup"}\n', stderr: '' });
  });

  it('fails in `switchboard call` with the reason if it asks for input', async () => {
    const { code, stdout, stderr } = await run('call', 'ask');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/Server "worker" requires elicitation\/create, but the client does not support/);
  });

  it('appears in `switchboard ls` like any other', async () => {
    const { code, stdout } = await run('ls');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^box +ready +stdio +\d+ tools$/m);
  });

  it('is tested by the API like any other', async () => {
    const path = '/api/v1/projects/default/servers/box/test';
    const { json } = await exchange(`${switchboard.baseUrl}${path}`, {
      headers: { 'content-type': 'application/json' },
    });
    expect(json).toMatchObject({ ok: true });
  });
});
