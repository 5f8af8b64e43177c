import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { fixtureServer } from '../helpers/servers.ts';
import { echoServer, errorIn, Scene } from './scene.ts';

const MANY = Array.from({ length: 50 }, (_, index) => `text ${index}`);
/** Short waits between the tries that lead to the open breaker. */
const soon = { backoffFirstMs: 20 };

describe.concurrent('a breaker', () => {
  it('opens after three failed connects: calls fail at once, say when the next try is, and start nothing [P12]', async () => {
    await using files = await temporaryFolder();
    const [alive, starts] = [`${files.path}/alive`, `${files.path}/starts`];
    await writeFile(alive, '');
    await using scene = await Scene.start(
      (witness) => ({
        broken: echoServer(witness, 'recovering', 'broken', { RECOVERS_WITH: alive, START_COUNT: starts }),
      }),
      soon,
    );
    const { pid } = await scene.echoOf('broken__echo', { text: 'before' });
    await rm(alive);
    process.kill(pid, 'SIGKILL');
    const { next_try, error: reason } = await scene.reaches('broken', 'breaker_open');
    expect(reason).toContain('FATAL: not yet');
    expect((await readFile(starts)).length).toBe(1 + 3);

    const errors = await scene.beside(() =>
      Promise.all(MANY.map((text) => scene.errorOf('broken__echo', { text }))),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        code: -32603,
        message: expect.stringMatching(/^Server "broken" .*FATAL: not yet \(next try in 3[56]\d\d s\)$/),
        data: { code: 'server_unavailable', server: 'broken', nextTry: next_try },
      });
    }
    expect((await readFile(starts)).length).toBe(1 + 3);
    expect(await scene.session.toolNames()).toContain('broken__echo');
    expect(await scene.view('broken')).toMatchObject({ state: 'breaker_open', next_try, tool_count: 3 });
  });

  it('stays open for 60 seconds where nothing else is set [P12]', async () => {
    await using scene = await Scene.start(
      { dying: fixtureServer('dying') },
      { ...soon, breakerOpenMs: undefined },
    );
    const { since, next_try } = await scene.reaches('dying', 'breaker_open');
    expect(Date.parse(next_try!) - Date.parse(since)).toBe(60_000);
    expect(scene.changesTo('dying', 'backing_off')).toHaveLength(2);
    await scene.healthyAnswers();
  });

  it('lets exactly one try through, however many calls wait for it, and announces that it is closed [P12]', async () => {
    await using files = await temporaryFolder();
    const [alive, starts] = [`${files.path}/alive`, `${files.path}/starts`];
    await writeFile(alive, '');
    const late = fixtureServer('late');
    const script = 'echo start >> "$STARTS"; test -e "$ALIVE" && exec "$0" "$1"; exit 4';
    await using scene = await Scene.start(
      (witness) => {
        void witness.sees('late', 'start').then(() => witness.tell('late', 'answer'));
        const env = { ...witness.env('late'), STARTS: starts, ALIVE: alive };
        return { late: { command: 'sh', args: ['-c', script, late.command, ...late.args], env } };
      },
      { ...soon, breakerOpenMs: 300, keepAliveMs: 50 },
    );
    const started = (times: number) => scene.witness.severalOf('late', 'start', times);
    const countStarts = async () => (await readFile(starts, 'utf8')).split('\n').length - 1;
    /** Comes back when all of them are waiting. */
    const callMany = () =>
      Promise.all(MANY.map((text) => scene.session.openCall('late__late_tool', { text }, text)));
    const news = await scene.session.listen();

    await rm(alive);
    process.kill((await started(1))[0]!.pid, 'SIGKILL');
    await scene.reaches('late', 'breaker_open');
    await writeFile(alive, '');
    const [, firstTry] = await started(2);
    const tries = await countStarts();
    const failing = await callMany();
    expect(await countStarts()).toBe(tries);
    await scene.beside(async () => {
      process.kill(firstTry!.pid, 'SIGKILL');
      for (const error of await Promise.all(failing.map(errorIn))) {
        expect(error).toMatchObject({ code: -32603, data: { server: 'late' } });
        expect(error?.message).toContain('Server "late"');
      }
    });

    // The next one is let through when the time of the breaker is over again.
    await started(3);
    expect(await countStarts()).toBe(tries + 1);
    const waiting = await callMany();
    const announced = news.events.next(({ message }) => {
      return message?.method === 'notifications/tools/list_changed';
    });
    scene.witness.tell('late', 'answer');
    for (const stream of waiting) {
      const { result } = await stream.message((message) => message.result !== undefined);
      expect(result).toMatchObject({ content: [{ text: 'better late than never' }] });
    }
    await announced;
    expect(await countStarts()).toBe(tries + 1);
    expect(await scene.view('late')).toMatchObject({ state: 'ready', error: null, next_try: null });
  });
});
