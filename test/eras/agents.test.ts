import { describe, expect, it } from 'vitest';
import { calls, resultsIn, says } from '../agent/messages-api.ts';
import { openScene } from '../agent/scene.ts';
import { runCli } from '../helpers/cli.ts';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { startServer } from './servers.ts';

const worker = fixtureServer('eras/binds-state-to-process');
const nobody = 'wants to ask for something before it answers, and nobody is there to be asked';

describe('an agent with servers of the modern era', () => {
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

  it('is told why where one wants to ask', async () => {
    const script = [calls({ name: 'ask' }), says('I see.')];
    await using scene = await openScene(script, () => ({ servers: { worker } }));
    await scene.agent.chat('ask');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { is_error: true, content: [{ type: 'text', text: expect.stringContaining(nobody) }] },
    ]);
  });

  it('is told why where one does not even ask, because nobody could answer', async () => {
    const script = [calls({ name: 'ask_name' }), says('I see.')];
    await using scene = await openScene(script, () => ({ servers: { box: fixtureServer('eras/modern') } }));
    await scene.agent.chat('ask');
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { is_error: true, content: [{ type: 'text', text: expect.stringMatching(/elicitation/i) }] },
    ]);
  });
});

describe('with a server of the modern era', () => {
  let switchboard: RunningSwitchboard;
  setUp(async (use) => {
    switchboard = use(
      await startSwitchboard({ box: fixtureServer('eras/modern'), worker }, {}, { database: 'shared' }),
    );
  });
  const run = (...words: string[]) => runCli([...words, '--url', switchboard.baseUrl]);

  it('`switchboard call` shows what a tool gives', async () => {
    const { code, stdout, stderr } = await run('call', 'echo', 'text=soup');
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '{"text":"soup"}\n', stderr: '' });
  });

  it('`switchboard call` says why where one wants to ask', async () => {
    const { code, stdout, stderr } = await run('call', 'ask');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/Server "worker" requires elicitation\/create, but the client does not support/);
  });

  it('`switchboard ls` shows it as any other', async () => {
    const { code, stdout } = await run('ls');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^box +ready +stdio +\d+ tools$/m);
  });

  it('the API tests it as any other', async () => {
    const path = '/api/v1/projects/default/servers/box/test';
    const { json } = await exchange(`${switchboard.baseUrl}${path}`, {
      headers: { 'content-type': 'application/json' },
    });
    expect(json).toMatchObject({ ok: true });
  });
});
