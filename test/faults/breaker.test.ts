import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { echoServer, Scene } from './scene.ts';

const MANY = Array.from({ length: 50 }, (_, index) => `text ${index}`);
/** Short delays until the breaker opens. */
const soon = { backoffFirstMs: 20 };

describe.concurrent('a breaker', () => {
  it('opens after three failed connects: calls fail at once with the time of the next try, and start nothing [P12]', async () => {
    await using files = await temporaryFolder();
    const [alive, starts] = [`${files.path}/alive`, `${files.path}/starts`];
    await writeFile(alive, '');
    await using scene = await Scene.start(
      (witness) => ({
        broken: echoServer(witness, 'fails-first-starts', 'broken', {
          RECOVERS_WITH: alive,
          START_COUNT: starts,
        }),
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
        message: expect.stringMatching(
          /^Server "broken" .*FATAL: not yet \(breaker open, next try in 3[56]\d\d s\)$/,
        ),
        data: { code: 'server_unavailable', server: 'broken', nextTry: next_try },
      });
    }
    expect((await readFile(starts)).length).toBe(1 + 3);
    expect(await scene.session.toolNames()).toContain('broken__echo');
    expect(await scene.view('broken')).toMatchObject({ state: 'breaker_open', next_try, tool_count: 3 });
  });

  it('stays open for 60 seconds by default [P12]', async () => {
    await using scene = await Scene.start(
      { dying: fixtureServer('fails-to-start') },
      { ...soon, breakerOpenMs: undefined },
    );
    const { since, next_try } = await scene.reaches('dying', 'breaker_open');
    expect(Date.parse(next_try!) - Date.parse(since)).toBe(60_000);
    expect(scene.changesTo('dying', 'backing_off')).toHaveLength(2);
    await scene.healthyAnswers();
  });

  it('allows exactly one try, for which no call waits, and announces that it is closed [P12]', async () => {
    await using files = await temporaryFolder();
    const [alive, starts] = [`${files.path}/alive`, `${files.path}/starts`];
    await writeFile(alive, '');
    const late = fixtureServer('delays-handshake');
    const script = 'echo start >> "$STARTS"; test -e "$ALIVE" && exec "$0" "$1"; exit 4';
    await using scene = await Scene.start(
      (witness) => {
        void witness.sees('late', 'start').then(() => witness.tell('late', 'answer'));
        const env = { ...witness.env('late'), STARTS: starts, ALIVE: alive };
        return { late: { command: 'sh', args: ['-c', script, late.command, ...late.args], env } };
      },
      { ...soon, breakerOpenMs: 300 },
    );
    const started = (times: number) => scene.witness.severalOf('late', 'start', times);
    const countStarts = async () => (await readFile(starts, 'utf8')).split('\n').length - 1;
    const expectRefused = async () => {
      const errors = await Promise.all(MANY.map((text) => scene.errorOf('late__late_tool', { text })));
      for (const error of errors) {
        expect(error).toMatchObject({
          code: -32603,
          message: expect.stringMatching(/^Server "late" .* \(connecting again for \d+\.\d s\)$/),
          data: { server: 'late', state: 'starting' },
        });
      }
    };
    const news = await scene.session.listen();

    await rm(alive);
    process.kill((await started(1))[0]!.pid, 'SIGKILL');
    await scene.reaches('late', 'breaker_open');
    await writeFile(alive, '');
    const [, firstTry] = await started(2);
    const tries = await countStarts();
    await scene.beside(expectRefused);
    expect(await countStarts()).toBe(tries);
    process.kill(firstTry!.pid, 'SIGKILL');

    // The next try comes when the breaker's time is over again.
    await started(3);
    expect(await countStarts()).toBe(tries + 1);
    await expectRefused();
    const announced = news.events.next(({ message }) => {
      return message?.method === 'notifications/tools/list_changed';
    });
    scene.witness.tell('late', 'answer');
    await announced;
    expect(await scene.session.callText('late__late_tool')).toBe('better late than never');
    expect(await countStarts()).toBe(tries + 1);
    expect(await scene.view('late')).toMatchObject({ state: 'ready', error: null, next_try: null });
  });
});
