import { expect, it } from 'vitest';
import { connectHttp, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { answerJson, goodResult, HttpPeer } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

it.concurrent('a missing list delays no other, and follows when it arrives', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard(
    {
      stalling: fixtureServer('delays-prompt-list', witness.env('stalling')),
      notes: fixtureServer('notes'),
    },
    { discoveryWaitMs: 100, connectTimeoutMs: 3_600_000 },
  );
  await using connected = await connectHttp(switchboard.url);
  const { client, notifications } = connected;
  await toolNamesOnce(connected, (names) => names.includes('hurry') && names.includes('touch'));
  expect(textOf(await client.callTool({ name: 'hurry' }))).toBe('done at once');
  expect(textOf(await client.callTool({ name: 'touch', arguments: {} }))).toBe('done');
  const promptsChanged = ({ method }: { method: string }) => method === 'notifications/prompts/list_changed';
  await notifications.first(promptsChanged);
  expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['summarize']);

  const announced = notifications.next(promptsChanged);
  await witness.sees('stalling', 'start');
  witness.tell('stalling', 'list prompts');
  await announced;
  const prompts = (await client.listPrompts()).prompts.map(({ name }) => name);
  expect(prompts.toSorted()).toEqual(['finally', 'summarize']);
  const ready = await switchboard.event(({ name, state }) => name === 'stalling' && state === 'ready');
  expect(ready).toMatchObject({ error: null, tools: 1, prompts: 1 });
});

it('a list that never arrives is given up, and the server works without it', async () => {
  await using switchboard = await startSwitchboard(
    { stalling: fixtureServer('delays-prompt-list') },
    { startup: 'parallel', connectTimeoutMs: 5_000 },
  );
  const ready = await switchboard.event(({ name, state }) => name === 'stalling' && state === 'degraded');
  const missing = 'its prompts could not be listed: No response to prompts/list within 5000 ms.';
  expect(ready).toMatchObject({ tools: 1, prompts: 0, error: missing });
  const response = await fetch(`${switchboard.baseUrl}/api/v1/projects/default/servers/stalling`);
  expect(await response.json()).toMatchObject({ state: 'degraded', tool_count: 1, error: missing });
  const session = await RawSession.open(switchboard.url);
  expect(await session.toolNames()).toEqual(['hurry']);
  expect(await session.callText('hurry')).toBe('done at once');
});

it.concurrent('a new server is announced for what it offers, and not for empty lists', async () => {
  await using switchboard = await startSwitchboard({ growing: fixtureServer('grows-lists') });
  const session = await RawSession.open(switchboard.url);
  const stream = await session.listen();
  const announced = () => stream.messages.map(({ method }) => method);
  const toolsChanged = () =>
    stream.events.next(({ message }) => message?.method === 'notifications/tools/list_changed');
  const known = toolsChanged();
  await session.toolNames();
  await known;
  // Other notifications of the first discovery would come before this one.
  const grown = toolsChanged();
  await session.call('grow', { name: 'mark' });
  await grown;
  expect(announced()).toEqual(['notifications/tools/list_changed', 'notifications/tools/list_changed']);
});

it.concurrent('an endless list is given up, and delays no other server', async () => {
  let pages = 0;
  await using peer = await HttpPeer.start({
    endless: ({ message, response }) => {
      if (message?.method !== 'tools/list') return false;
      const page = { tools: [{ name: `tool${++pages}`, inputSchema: {} }], nextCursor: `page ${pages}` };
      setTimeout(() => answerJson(response, { id: message.id, result: page }), 20);
      return true;
    },
  });
  await using switchboard = await startSwitchboard(
    { ...peer.configuration(), notes: fixtureServer('notes') },
    { connectTimeoutMs: 3_000, discoveryWaitMs: 3_600_000, backoffFirstMs: 3_600_000 },
  );
  const session = await RawSession.open(switchboard.url);
  expect(await session.callText('touch')).toBe('done');
  expect(await session.toolNames()).toEqual(['touch', 'refer', 'announce']);
  const state = await switchboard.event(({ name, state }) => name === 'endless' && state === 'degraded');
  expect(state.error).toMatch(/its tools could not be listed: No response to tools\/list within \d+ ms/);
  expect(pages).toBeGreaterThan(1);
});

it.concurrent('a server that does not support an optional list is ready without it', async () => {
  await using peer = await HttpPeer.start({
    plain: ({ message, response }) => {
      if (message?.method === 'initialize') {
        const good = goodResult(message) as { capabilities: object };
        const capabilities = { ...good.capabilities, resources: {}, prompts: {} };
        answerJson(response, { id: message.id, result: { ...good, capabilities } });
      } else if (message?.method === 'resources/list') {
        const resources = [{ uri: 'plain://one', name: 'one' }];
        answerJson(response, { id: message.id, result: { resources } });
      } else if (/^(resources|prompts)\//.test(message?.method ?? '')) {
        answerJson(response, { id: message!.id, error: { code: -32601, message: 'Method not found' } });
      } else return false;
      return true;
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  await using connected = await connectHttp(switchboard.url);
  expect((await connected.client.listResources()).resources).toMatchObject([{ name: 'one' }]);
  expect((await connected.client.listResourceTemplates()).resourceTemplates).toEqual([]);
  await switchboard.event(({ name, state }) => name === 'plain' && state === 'ready');
  expect(switchboard.events.filter(({ state }) => state === 'degraded')).toEqual([]);
});

it.concurrent('a list that failed is requested again even if the server announced another one meanwhile', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard(
    { warming: fixtureServer('fails-first-list', witness.env('warming')) },
    { backoffFirstMs: 1_000 },
  );
  await using connected = await connectHttp(switchboard.url);
  expect((await connected.client.listTools()).tools).toEqual([]);
  const degraded = await switchboard.event(({ state }) => state === 'degraded');
  expect(degraded.error).toContain('its tools could not be listed: tools/list: still warming up');
  witness.tell('warming', 'announce prompts');
  await witness.severalOf('warming', 'prompts/list', 2);
  await toolNamesOnce(connected, (names) => names.includes('warm'));
  await switchboard.event(({ name, state }) => name === 'warming' && state === 'ready');
  await witness.severalOf('warming', 'tools/list', 2);
  expect(witness.seenBy('warming', 'tools/list')).toHaveLength(2);
});
