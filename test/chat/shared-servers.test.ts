import { describe, expect, it } from 'vitest';
import { calls, resultsIn, says } from '../agent/messages-api.ts';
import { setUp } from '../helpers/set-up.ts';
import { ChatSite, eventOf } from './scene.ts';

let scene: ChatSite;

setUp(async (use) => {
  scene = use(await ChatSite.start());
});

describe('the servers of a project in chats', () => {
  it('[P10] are connected on the first chat, and then kept', async () => {
    const talk = await scene.project(({ body }) =>
      body.messages.length === 1 ? calls({ name: 'pid' }) : says('Done.'),
    );
    const { witness } = scene.site;
    const who = talk.project.who('box');
    expect((await talk.project.server('box')).state).toBe('idle');
    expect(witness.seenBy(who, 'initialize')).toEqual([]);
    const pids: string[] = [];
    for (const question of ['one', 'two', 'three'])
      pids.push((await talk.chat(question)).tool_calls[0]!.text);
    expect(new Set(pids).size).toBe(1);
    await witness.severalOf(who, 'initialize', 1);
    expect(witness.seenBy(who, 'initialize')).toHaveLength(1);
  });

  it('[P11] run as one process each for 100 concurrent chats and for clients', async () => {
    const talk = await scene.project(({ body }) =>
      body.messages.length === 1
        ? calls({ name: 'box__pid' }, { name: 'crate__pid', id: 'b' })
        : says('Done.'),
    );
    await talk.project.add('crate');
    const chats = await Promise.all(Array.from({ length: 100 }, (_, number) => talk.chat(`Chat ${number}`)));
    const pids = chats.map(({ tool_calls }) => tool_calls.map(({ text }) => text));
    expect(pids).toHaveLength(100);
    expect(new Set(pids.map((pair) => pair.join())).size).toBe(1);
    const [box, crate] = pids[0]!;
    expect(Number(box)).toBeGreaterThan(1);
    expect(box).not.toBe(crate);
    for (const server of ['box', 'crate']) {
      await scene.site.witness.severalOf(talk.project.who(server), 'initialize', 1);
      expect(scene.site.witness.seenBy(talk.project.who(server), 'initialize')).toHaveLength(1);
    }
    const session = await talk.project.session();
    expect(await session.callText('box__pid')).toBe(box);
    expect(new Set(chats.map(({ run_id }) => run_id)).size).toBe(100);
  });

  it('give the model an error when they die during a chat, and the next chat works', async () => {
    const talk = await scene.project([
      calls({ name: 'wait' }),
      says('It died.'),
      calls({ name: 'pid' }),
      says('It lives.'),
    ]);
    const stream = await talk.stream('Wait!');
    const { pid } = await scene.site.witness.sees(talk.project.who('box'), 'waiting');
    process.kill(pid, 'SIGKILL');
    const done = await eventOf(stream, 'done');
    expect(done).toMatchObject({ text: 'It died.' });
    const [result] = resultsIn(talk.requests[1]!);
    expect(result).toMatchObject({ is_error: true, content: [{ text: expect.stringContaining('"box"') }] });
    const run = await talk.run(String(done.run_id));
    expect(run).toMatchObject({ status: 'completed' });
    expect(run.tool_calls).toMatchObject([{ tool: 'wait', status: 'error' }]);

    const next = await talk.chat('And now?');
    expect(next).toMatchObject({ text: 'It lives.', tool_calls: [{ is_error: false }] });
    expect(Number(next.tool_calls[0]!.text)).not.toBe(pid);
  });

  it('are left out if they cannot be started', async () => {
    const talk = await scene.project([calls({ name: 'echo', input: { text: 'here' } }), says('Done.')]);
    const config = { command: 'switchboard-has-no-such-command' };
    await talk.project.done('POST /servers', { name: 'broken', transport: 'stdio', config });
    const chat = await talk.chat('Go!');
    expect(chat.tool_calls).toMatchObject([{ text: 'here', is_error: false }]);
  });

  it('run once per chat if isolated, and end with it', async () => {
    const talk = await scene.project(({ body }) =>
      body.messages.length === 1 ? calls({ name: 'crate__pid' }) : says('Done.'),
    );
    await talk.project.add('crate', { isolation: 'session' });
    const pids = [await talk.chat('one'), await talk.chat('two')].map(
      ({ tool_calls }) => tool_calls[0]!.text,
    );
    expect(pids[0]).not.toBe(pids[1]);
    const who = talk.project.who('crate');
    for (const pid of pids) {
      await scene.site.witness.sightings.first(
        (seen) => seen.who === who && seen.saw === 'end' && seen.pid === Number(pid),
      );
    }
  });
});
