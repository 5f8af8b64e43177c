import { describe, expect, it } from 'vitest';
import { AiAgent, nativeTool, type ToolCallRecord } from '../../src/agent.ts';
import { isAlive } from '../helpers/processes.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import type { Witness } from '../helpers/witness.ts';
import { calls, resultsIn, says } from './messages-api.ts';
import { openScene } from './scene.ts';

const box = (witness: Witness) => ({ servers: { box: fixtureServer('toolbox', witness.env('box')) } });
const worker = (witness: Witness) => ({
  servers: { worker: fixtureServer('reports-calls', witness.env('worker')) },
});

describe('starting an agent', () => {
  it('[M11] starts one server after another', async () => {
    await using scene = await openScene([], (witness) => ({
      servers: {
        first: fixtureServer('delays-handshake', witness.env('first')),
        second: fixtureServer('toolbox', witness.env('second')),
      },
    }));
    const started = scene.agent.start();
    await scene.witness.sees('first', 'initialize');
    // The second server would have started in the time of this whole start.
    const other = { other: fixtureServer('toolbox', scene.witness.env('other')) };
    await using meanwhile = new AiAgent({ model: 'claude-stand-in', servers: other });
    await meanwhile.start();
    await scene.witness.sees('other', 'tools/list');
    expect(scene.witness.seenBy('second', 'start')).toEqual([]);
    scene.witness.tell('first', 'answer');
    await started;
    await scene.witness.sees('second', 'tools/list');
  });

  it('[M11] fails with the first server that fails, and stops those already started', async () => {
    await using scene = await openScene([], (witness) => ({
      servers: {
        good: fixtureServer('toolbox', witness.env('good')),
        bad: fixtureServer('fails-to-start'),
        never: fixtureServer('toolbox', witness.env('never')),
      },
    }));
    const failure = { code: 'server_start_failed', message: expect.stringContaining('API_TOKEN is not set') };
    await expect(scene.agent.start()).rejects.toMatchObject(failure);
    const { pid } = await scene.witness.sees('good', 'end');
    expect(isAlive(pid)).toBe(false);
    expect(await scene.records()).toEqual([]);
    // A chat retries the start, and fails the same way.
    await expect(scene.agent.chat('hello')).rejects.toMatchObject(failure);
    await scene.witness.severalOf('good', 'end', 2);
    expect(scene.witness.seenBy('never', 'start')).toEqual([]);
    expect(scene.api.requests.items).toEqual([]);
    expect(await scene.records()).toEqual([]);
  });

  it('[M11] fails with a server that cannot list its tools, and stops those already started', async () => {
    await using scene = await openScene([], (witness) => ({
      servers: {
        good: fixtureServer('toolbox', witness.env('good')),
        listless: fixtureServer('fails-to-list'),
      },
    }));
    await expect(scene.agent.start()).rejects.toMatchObject({
      code: 'server_start_failed',
      message: expect.stringMatching(
        /^Server "listless" cannot be used: its tools could not be listed: .*lost/,
      ),
      data: { server: 'listless' },
    });
    await scene.witness.sees('good', 'end');
    expect(await scene.records()).toEqual([]);
  });

  it('[M13] happens on the first chat, once for concurrent ones, and serves later chats', async () => {
    await using scene = await openScene(
      (request) => (resultsIn(request).length === 0 ? calls({ name: 'pid' }) : says('done')),
      box,
    );
    const chats = await Promise.all(['a', 'b', 'c'].map((input) => scene.agent.chat(input)));
    chats.push(await scene.agent.chat('later'));
    const pids = chats.map(({ toolCalls }) => JSON.stringify(toolCalls[0]?.content));
    expect(new Set(pids).size).toBe(1);
    await scene.witness.severalOf('box', 'start', 1);
    expect(scene.witness.seenBy('box', 'start')).toHaveLength(1);
  });

  it('is cancelled when the agent is stopped, and leaves nothing behind', async () => {
    await using scene = await openScene([], (witness) => ({
      servers: { slow: fixtureServer('delays-handshake', witness.env('slow')) },
    }));
    const chat = scene.agent.chat('hello');
    const { pid } = await scene.witness.sees('slow', 'initialize');
    await Promise.all([expect(chat).rejects.toThrow('The agent was stopped.'), scene.agent.stop()]);
    expect(isAlive(pid)).toBe(false);
    expect(await scene.records()).toEqual([]);
  });

  it('rejects an invalid configuration', () => {
    const model = 'claude-stand-in';
    const other = { name: 'other', turn: () => Promise.reject(new Error('never asked')) };
    const wrong = { code: 'invalid_config' };
    expect(() => new AiAgent({ model, servers: { native: { command: 'x' } } })).toThrow(/"native"/);
    expect(() => new AiAgent({ model, servers: { a: {} } })).toThrow(
      expect.objectContaining({
        ...wrong,
        message: expect.stringMatching(/^the server "a": has neither "command"/),
      }),
    );
    expect(
      () => new AiAgent({ model, url: 'http://127.0.0.1:1/mcp', servers: { a: { command: 'x' } } }),
    ).toThrow(/`servers` and `url` are both set/);
    expect(() => new AiAgent({ model: other, apiKey: 'k' })).toThrow(/`apiKey` has no effect/);
    const mistaken = { a: { command: 'x', group: 'b' }, b: { command: 'y' } };
    expect(() => new AiAgent({ model, servers: mistaken })).toThrow(expect.objectContaining(wrong));
    const unnamed = nativeTool({ name: 'a b', input: {}, run: () => '' });
    expect(() => new AiAgent({ model, nativeTools: [unnamed] })).toThrow(/cannot be named "a b"/);
  });
});

describe('the servers of an agent', () => {
  it('may have unknown keys, with a warning', async () => {
    const server = { ...fixtureServer('toolbox'), timeoutMS: 5 };
    await using scene = await openScene([], () => ({ servers: { box: server } }));
    expect(scene.warnings).toEqual([
      'Server "box": timeoutMS: is not a known key, so it has no effect; did you mean "timeoutMs"?',
    ]);
  });

  it('keep their tools, with a warning, when they can no longer list them', async () => {
    const warned = Promise.withResolvers<string>();
    await using scene = await openScene([calls({ name: 'forget' }), says('done')], () => ({
      servers: { listless: fixtureServer('fails-to-list', {}, 'later') },
      onWarning: warned.resolve,
    }));
    await scene.agent.chat('forget');
    expect(await warned.promise).toMatch(/^Server "listless": its tools could not be listed: .*lost/);
    expect(scene.agent.tools()).toMatchObject([{ name: 'forget' }]);
  });

  it('[P11] are one process each for 100 chats at once', async () => {
    await using scene = await openScene(
      (request) =>
        resultsIn(request).length === 0 ? calls({ name: 'pid' }, { name: 'whoami', id: 'b' }) : says('done'),
      (witness) => ({
        servers: {
          box: fixtureServer('toolbox', witness.env('box')),
          worker: fixtureServer('reports-calls', witness.env('worker')),
        },
      }),
    );
    const chats = await Promise.all(
      Array.from({ length: 100 }, (_, index) => scene.agent.chat(`chat ${index}`)),
    );
    const given = chats.map(({ toolCalls }) => JSON.stringify(toolCalls.map(({ content }) => content)));
    expect(new Set(given).size).toBe(1);
    await scene.witness.severalOf('box', 'start', 1);
    expect(scene.witness.seenBy('box', 'start')).toHaveLength(1);
    await scene.witness.severalOf('worker', 'start', 1);
    expect(scene.witness.seenBy('worker', 'start')).toHaveLength(1);
  });

  it('give Claude an error when they are killed during a chat, and the next chat works', async () => {
    await using scene = await openScene((request) => {
      if (resultsIn(request).length > 0) return says('done');
      const isWork = JSON.stringify(request.body.messages).includes('work');
      return calls(isWork ? { name: 'work', input: { text: 'a' } } : { name: 'whoami' });
    }, worker);
    // Several times: a new chat does not wait for the reconnect delay.
    for (let round = 1; round <= 3; round++) {
      const chat = scene.agent.chat('work');
      const sightings = await scene.witness.severalOf('worker', 'work', round);
      const { pid } = sightings.at(-1)!;
      process.kill(pid, 'SIGKILL');
      const { text, toolCalls } = await chat;
      expect(text).toBe('done');
      expect(toolCalls).toMatchObject([{ name: 'work', isError: true }]);
      expect(textIn(toolCalls[0]!)).toMatch(/worker.*was killed by SIGKILL/);
      const next = await scene.agent.chat('who is there?');
      expect(next.toolCalls).toMatchObject([{ name: 'whoami', isError: false }]);
      expect(JSON.parse(textIn(next.toolCalls[0]!)).pid).not.toBe(pid);
    }
  });

  it('get an error if they send a request to the client', async () => {
    await using scene = await openScene(
      [calls({ name: 'ask', input: { about: 'salt?' } }), says('done')],
      (witness) => ({
        servers: { curious: fixtureServer('asks-on-order', witness.env('curious')) },
      }),
    );
    const chat = scene.agent.chat('ask');
    await scene.witness.sees('curious', 'tools/call');
    scene.witness.tell('curious', 'ask');
    await chat;
    expect(JSON.stringify(resultsIn(scene.api.requests.items[1]!))).toContain(
      'which an agent does not support',
    );
  });
});

describe('stopping an agent', () => {
  it('[M12] ends its chats and every process', async () => {
    await using scene = await openScene([calls({ name: 'work', input: { text: 'a' } })], worker);
    const chat = scene.agent.chat('work');
    const { pid } = await scene.witness.sees('worker', 'work');
    await Promise.all([expect(chat).rejects.toThrow('The agent was stopped.'), scene.agent.stop()]);
    expect(isAlive(-pid)).toBe(false);
    expect(await scene.records()).toEqual([]);
    await expect(scene.agent.chat('hello')).rejects.toThrow('The agent was stopped.');
    await expect(scene.agent.start()).rejects.toThrow('The servers were stopped.');
    await scene.agent.stop();
  });

  it('happens at the end of its `await using` block', async () => {
    await using scene = await openScene([]);
    {
      await using agent = new AiAgent({ model: 'claude-stand-in', ...box(scene.witness) });
      await agent.start();
    }
    await scene.witness.sees('box', 'end');
    expect(await scene.records()).toEqual([]);
  });
});

function textIn({ content }: ToolCallRecord): string {
  const [first] = content;
  return first?.type === 'text' ? first.text : '';
}
