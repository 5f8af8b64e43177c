import { isBaseTool, isBaseToolset } from '@google/adk';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { beforeAll, describe, expect, it } from 'vitest';
import { adkTools } from '../../src/adk.ts';
import { freePort } from '../helpers/free-port.ts';
import { exchange } from '../helpers/raw-http.ts';
import {
  fixtureServer,
  type RunningSwitchboard,
  referenceServer,
  startSwitchboard,
} from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { calls, offeredIn, openHome, runAgent, textIn, toolset } from './scene.ts';

// The returned function removes it after the tests.
beforeAll(() => openHome());

describe.concurrent('the tools of a project in the ADK', () => {
  it('keep their names, descriptions and schemas [P8]', async () => {
    await using switchboard = await startSwitchboard({ everything: referenceServer('everything', 'stdio') });
    await using tools = toolset({ url: projectOf(switchboard) });
    const adapted = await tools.getTools();
    const client = new Client({ name: 'adk-test', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(switchboard.url)));
    const listed = await client.listTools();
    await client.close();
    expect(listed.tools.length).toBeGreaterThan(5);
    expect(isBaseToolset(tools)).toBe(true);
    expect(adapted.every(isBaseTool)).toBe(true);
    expect(adapted.map((tool) => tool._getDeclaration())).toEqual(
      listed.tools.map(({ name, description, inputSchema }) => ({
        name,
        description,
        parametersJsonSchema: inputSchema,
      })),
    );
    expect(adapted.map(({ name, description, server }) => ({ name, description, server }))).toEqual(
      listed.tools.map(({ name, description }) => ({ name, description, server: 'everything' })),
    );
  });

  it('are offered to the model, and its calls reach their server and return results [P8]', async () => {
    await using switchboard = await startSwitchboard({
      one: fixtureServer('toolbox'),
      everything: referenceServer('everything', 'stdio'),
    });
    await using tools = toolset({ url: projectOf(switchboard), filter: ['pid', 'get-*'] });
    const { responses, requests, text } = await runAgent(tools, [
      calls('pid'),
      calls('get-sum', { a: 2, b: 3 }),
      'Done.',
    ]);
    expect(offeredIn(requests[0]!).filter((name) => !name.startsWith('get-'))).toEqual(['pid']);
    expect(offeredIn(requests[0]!)).toContain('get-sum');
    expect(textIn(responses[0])).toMatch(/^\d+$/);
    expect(textIn(responses[1])).toBe('The sum of 2 and 3 is 5.');
    expect(text).toBe('Done.');
  });

  it('report failures under `error`: of the tool, of the server, and of the arguments', async () => {
    await using switchboard = await startSwitchboard({
      refusing: fixtureServer('returns-errors'),
      crashing: fixtureServer('crashes-in-call'),
    });
    await using tools = toolset({ url: projectOf(switchboard) });
    const { responses } = await runAgent(tools, [
      calls('fail'),
      calls('refuse', { code: -32050, message: 'not today' }),
      calls('crash'),
      'Done.',
    ]);
    expect(responses).toHaveLength(3);
    expect(responses[0]).toEqual({
      error: { content: [{ type: 'text', text: 'that did not work' }], isError: true },
    });
    expect(responses[1]).toEqual({ error: expect.stringContaining('not today') });
    expect(responses[2]).toEqual({ error: expect.anything() });
    expect(JSON.stringify(responses[2])).toContain('crashing');
  });

  it('cancel the call at its server when the run is cancelled', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      hanging: fixtureServer('hangs-in-call', witness.env('hanging')),
    });
    const cancelled = new AbortController();
    await using tools = toolset({ url: projectOf(switchboard) });
    const run = runAgent(tools, [calls('hang')], cancelled.signal);
    const { id } = await witness.sees('hanging', 'tools/call');
    cancelled.abort();
    const { params } = await witness.sees('hanging', 'notifications/cancelled');
    expect(params).toMatchObject({ requestId: id });
    const { requests } = await run;
    expect(requests).toHaveLength(1);
  });

  it('are updated in every turn of the model [P8]', async () => {
    await using switchboard = await startSwitchboard({ growing: fixtureServer('grows-lists') });
    await using tools = toolset({ url: projectOf(switchboard) });
    expect((await tools.getTools()).map(({ name }) => name)).toEqual(['grow']);
    await runAgent(tools, [calls('grow', { name: 'leaf' }), 'Done.']);
    await toolsOnce(tools, ['grow', 'leaf']);
    const { requests, responses } = await runAgent(tools, [calls('leaf', { name: 'twig' }), 'Done.']);
    expect(offeredIn(requests[0]!)).toEqual(['grow', 'leaf']);
    expect(textIn(responses[0])).toBe('grown by twig');
  });

  it('keep the names of their servers, with dots, unless they clash or the model rejects them [P8]', async () => {
    const servers = { one: fixtureServer('grows-lists'), two: fixtureServer('toolbox') };
    await using switchboard = await startSwitchboard(servers);
    for (const source of [{ url: projectOf(switchboard) }, { servers }]) {
      await using tools = toolset(source);
      const before = await namesOf(tools);
      // If dots were replaced, the last name would equal the first.
      const grown = ['b-one.x', 'a:b', 'née', 'b-one_x'];
      await runAgent(tools, [...grown.map((name) => calls('grow', { name })), 'Done.']);
      await toolsOnce(tools, ['grow', 'b-one.x', 'a:b', 'n_e', 'b-one_x', ...before.slice(1)]);
      const { requests, responses } = await runAgent(tools, [calls('b-one.x', { name: 'leaf' }), 'Done.']);
      expect(offeredIn(requests[0]!)).toContain('b-one.x');
      expect(textIn(responses[0])).toBe('grown by leaf');
    }
    await using some = toolset({ url: projectOf(switchboard), filter: ['b-one.*'] });
    expect(await namesOf(some)).toEqual(['b-one.x']);
  });

  it('work again after the server was killed', async () => {
    await using switchboard = await startSwitchboard({ one: fixtureServer('toolbox') });
    await using tools = toolset({ url: projectOf(switchboard) });
    const before = await runAgent(tools, [calls('pid'), 'Done.']);
    const pid = Number(textIn(before.responses[0]));
    process.kill(pid, 'SIGKILL');
    await switchboard.event(({ name, from }) => name === 'one' && from === 'ready');
    const after = await runAgent(tools, [calls('pid'), 'Done.']);
    expect(Number(textIn(after.responses[0]))).not.toBe(pid);
  });

  it('fail while Switchboard is down, and work again with its new tools after its restart', async () => {
    const port = String(await freePort());
    const options = { args: ['--port', port] };
    const servers = { one: fixtureServer('toolbox') };
    await using first = await startSwitchboard(servers, {}, options);
    // The tools may be listed while Switchboard goes down, which warns.
    await using tools = toolset({ url: projectOf(first), onWarning() {} });
    const before = await runAgent(tools, [calls('pid'), 'Done.']);
    const names = await namesOf(tools);
    await first.stop();
    // More failures than open the circuit breaker of a server, which must not apply to Switchboard.
    for (let run = 1; run <= 4; run++) {
      const during = await runAgent(tools, [calls('pid'), 'Done.']);
      expect(during.responses).toEqual([{ error: expect.any(String) }]);
    }
    await using _second = await startSwitchboard(
      { ...servers, two: fixtureServer('grows-lists') },
      {},
      options,
    );
    await toolsOnce(tools, [...names, 'grow']);
    const after = await runAgent(tools, [calls('pid'), 'Done.']);
    expect(textIn(after.responses[0])).toMatch(/^\d+$/);
    expect(textIn(after.responses[0])).not.toBe(textIn(before.responses[0]));
  });

  it('appear once Switchboard starts, if it was down at first', async () => {
    const port = await freePort();
    await using tools = toolset({ url: `http://127.0.0.1:${port}/mcp/default`, onWarning() {} });
    await expect(tools.getTools()).rejects.toThrow(`127.0.0.1:${port}`);
    await using _switchboard = await startSwitchboard(
      { growing: fixtureServer('grows-lists') },
      {},
      { args: ['--port', String(port)] },
    );
    expect(await namesOf(tools)).toEqual(['grow']);
  });
});

describe.concurrent('toolsets', () => {
  it('of one project share a connection until the last one is stopped', async () => {
    await using switchboard = await startSwitchboard({ growing: fixtureServer('grows-lists') });
    const url = projectOf(switchboard);
    await using one = toolset({ url });
    await using two = toolset({ url: url.replace('http:', 'HTTP:') });
    expect(await sessionsOf(switchboard)).toBe(0);
    await Promise.all([one.getTools(), two.getTools(), one.getTools()]);
    expect(await sessionsOf(switchboard)).toBe(1);
    await one.stop();
    await one.stop();
    const { responses } = await runAgent(two, [calls('grow', { name: 'leaf' }), 'Done.']);
    expect(textIn(responses[0])).toBe('grown by leaf');
    expect(await sessionsOf(switchboard)).toBe(1);
    await expect(one.getTools()).rejects.toThrow('This toolset was stopped');
    await two.stop();
    expect(await sessionsOf(switchboard)).toBe(0);
    await using three = toolset({ url });
    await toolsOnce(three, ['grow', 'leaf']);
  });

  it('with their own servers start them once for all runs, and end them when they are stopped', async () => {
    await using witness = await Witness.open();
    await using tools = toolset({
      servers: {
        one: fixtureServer('toolbox', witness.env('one')),
        two: fixtureServer('grows-lists'),
      },
      filter: ['pid', 'grow'],
    });
    const first = await runAgent(tools, [calls('pid'), 'Done.']);
    expect(offeredIn(first.requests[0]!)).toEqual(['pid', 'grow']);
    const second = await runAgent(tools, [calls('pid'), 'Done.']);
    expect(second.responses).toEqual(first.responses);
    await tools.stop();
    const pid = Number(textIn(first.responses[0]));
    await witness.sees('one', 'end', (sighting) => sighting.pid === pid);
    await witness.severalOf('one', 'start', 1);
    expect(witness.seenBy('one', 'start')).toHaveLength(1);
  });

  it('release their servers once no run needs them, and start them for the next run', async () => {
    await using witness = await Witness.open();
    await using tools = toolset({
      servers: { counting: fixtureServer('reports-calls', witness.env('counting')) },
      keepMs: 0,
    });
    // The first run ends and closes the toolset while a call of the second is in flight.
    const second = runAgent(tools, [calls('work', { text: 'long' }), 'Done.']);
    const { pid } = await witness.sees('counting', 'work');
    await runAgent(tools, [calls('whoami'), 'Done.']);
    witness.tell('counting', 'finish long');
    expect(textIn((await second).responses[0])).toBe('long');
    await witness.sees('counting', 'end', (sighting) => sighting.pid === pid);
    const third = await runAgent(tools, [calls('whoami'), 'Done.']);
    expect(JSON.parse(textIn(third.responses[0])).pid).not.toBe(pid);
  });

  it('filter their tools by a list, an empty list or a predicate', async () => {
    const servers = { one: fixtureServer('toolbox') };
    await using listed = toolset({ servers, filter: ['p*', 'add'] });
    await using none = toolset({ servers, filter: [] });
    await using judged = toolset({ servers, filter: ({ name }) => name.length === 3 });
    expect(await namesOf(listed)).toEqual(['pid', 'progress', 'add']);
    expect(await namesOf(none)).toEqual([]);
    const { requests } = await runAgent(judged, ['Done.']);
    expect(offeredIn(requests[0]!)).toEqual(['pid', 'log', 'add']);
  });

  it('give the ADK plain numbers for any notation on the wire', async () => {
    await using tools = toolset({ servers: { exacting: fixtureServer('writes-unusual-numbers') } });
    const { requests, responses } = await runAgent(tools, [calls('measure'), 'Done.']);
    expect(responses).toEqual([
      { content: [], structuredContent: { id: Number('12345678901234567890'), ratio: 1 } },
    ]);
    const [declared] = requests[0]!.config!.tools as { functionDeclarations: object[] }[];
    expect(declared!.functionDeclarations).toEqual([
      { name: 'measure', parametersJsonSchema: { type: 'object', maxProperties: 1 } },
    ]);
  });

  it('require exactly one of `url` and `servers`, and a valid URL', () => {
    expect(() => adkTools({})).toThrow('either `url`');
    expect(() => adkTools({ url: 'http://127.0.0.1:1/mcp', servers: {} })).toThrow('either `url`');
    expect(() => adkTools({ url: 'default' })).toThrow('"default" is not a URL');
    expect(() => adkTools({ servers: { one: { url: 'nowhere' } } })).toThrow('one');
  });
});

function projectOf({ baseUrl }: RunningSwitchboard): string {
  return `${baseUrl}/mcp/default`;
}

async function namesOf(tools: ReturnType<typeof adkTools>): Promise<string[]> {
  return (await tools.getTools()).map(({ name }) => name);
}

/** Settles when the toolset has these tools. The ADK has no event for it, so this polls. */
async function toolsOnce(tools: ReturnType<typeof adkTools>, names: string[]): Promise<void> {
  while ((await namesOf(tools)).join() !== names.join()) await new Promise(setImmediate);
}

async function sessionsOf({ baseUrl }: RunningSwitchboard): Promise<number> {
  const { text } = await exchange(`${baseUrl}/api/v1/status`, { method: 'GET' });
  return (JSON.parse(text) as { sessions: number }).sessions;
}
