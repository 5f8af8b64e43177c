import { describe, expect, it } from 'vitest';
import { runCli, temporaryFolder } from '../helpers/cli.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { echoServer, errorIn, Scene } from './scene.ts';

describe('a server that', () => {
  let scene: Scene;

  setUp(async (use) => {
    scene = use(
      await Scene.start((witness) => ({
        hanging: echoServer(witness, 'hangs-in-call', 'hanging'),
        crashing: echoServer(witness, 'crashes-in-call', 'crashing'),
        unlucky: echoServer(witness, 'crashes-in-call', 'unlucky'),
        dying: fixtureServer('fails-to-start'),
      })),
    );
  });

  it('hangs in a call fails only that call at its deadline; it gets a cancellation, and no restart', async () => {
    const before = await scene.echoOf('hanging__echo', { text: 'before' });
    const patient = await scene.stuckCall('hanging', 'patient');
    const error = await scene.beside(async () => {
      const failing = scene.errorOf('hanging__hang', { text: 'hasty' }, { 'dev.switchboard/timeoutMs': 300 });
      await scene.witness.sees('hanging', 'tools/call', ({ params }) => textOf(params) === 'hasty');
      expect(await scene.echoOf('hanging__echo', { text: 'meanwhile' })).toMatchObject({ text: 'meanwhile' });
      return failing;
    });
    expect(error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/^Server "hanging" did not respond within \d+ ms \(.*\)\.$/),
      data: { code: 'call_timeout', server: 'hanging', timeoutMs: 300 },
    });
    const { id } = await scene.witness.sees(
      'hanging',
      'tools/call',
      ({ params }) => textOf(params) === 'hasty',
    );
    const { params } = await scene.witness.sees('hanging', 'notifications/cancelled');
    expect(params).toMatchObject({ requestId: id });
    expect(await scene.echoOf('hanging__echo', { text: 'after' })).toMatchObject({ pid: before.pid });
    expect(await scene.view('hanging')).toMatchObject({ state: 'ready', restarts: 0, in_flight: 1 });

    process.kill(before.pid, 'SIGKILL');
    expect((await errorIn(patient))?.message).toContain('Server "hanging"');
  });

  it('dies in a call fails only its calls in flight, at once; the next call restarts it [A5, G7]', async () => {
    const before = await scene.echoOf('crashing__echo', { text: 'before' });
    const sibling = await scene.stuckCall('crashing', 'sibling');
    const error = await scene.beside(() => scene.errorOf('crashing__crash'));
    const how = `The server process exited with code 70; last output: FATAL: out of luck`;
    expect(error).toMatchObject({
      code: -32603,
      message: `Server "crashing": ${how} (the call may have been executed, and is not sent again)`,
      data: { code: 'server_unavailable', server: 'crashing', exitCode: 70 },
    });
    expect(await errorIn(sibling)).toEqual(error);
    await scene.switchboard.event(
      ({ message }) => message === `Project "default": a call failed: Server "crashing": ${how}`,
    );
    const after = await scene.echoOf('crashing__echo', { text: 'after' });
    expect(after).toMatchObject({ text: 'after', name: 'crashing' });
    expect(after.pid).not.toBe(before.pid);

    const log = await scene.log('crashing');
    expect(log).toEqual(
      expect.arrayContaining(['FATAL: out of luck', how, `a call failed: Server "crashing": ${how}`]),
    );
    const printed = await runCli(['logs', 'crashing', '--url', scene.switchboard.baseUrl]);
    expect(printed.stdout.split('\n')).toEqual(
      expect.arrayContaining([how, `a call failed: Server "crashing": ${how}`]),
    );
  });

  it('is killed repeatedly must wait; calls meanwhile fail at once with the time of the next try [A5, G7]', async () => {
    await expectKilled('unlucky__crash');
    const first = await scene.echoOf('unlucky__echo', { text: 'made good at once' });
    expect(first.name).toBe('unlucky');
    await expectKilled('unlucky__crash');
    const { next_try, error: reason } = await scene.reaches('unlucky', 'backing_off', 2);
    expect(reason).toContain('was killed by SIGKILL');
    const error = await scene.beside(() => scene.errorOf('unlucky__echo', { text: 'refused' }));
    expect(error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(
        /^Server "unlucky" is not available: .*SIGKILL.* \(backing off, next try in \d+ s\)$/,
      ),
      data: { code: 'server_unavailable', server: 'unlucky', nextTry: next_try },
    });
    // It is in the server's log, and in the output of the program.
    const line = `a call failed: ${error.message}`;
    expect(await scene.log('unlucky')).toContain(line);
    await scene.switchboard.event(
      ({ event, message }) => event === 'warning' && message === `Project "default": ${line}`,
    );
    // Neither the kill nor the rejected call has started another process.
    await scene.witness.severalOf('unlucky', 'start', 2);
    expect(scene.witness.seenBy('unlucky', 'start')).toHaveLength(2);
    expect(await scene.session.toolNames()).toContain('unlucky__echo');
  });

  async function expectKilled(tool: string): Promise<void> {
    const error = await scene.errorOf(tool, { signal: 'SIGKILL' });
    expect(error.message).toContain(`Server "unlucky": The server process was killed by SIGKILL`);
  }

  it('dies at start delays no list, is shown with its last output and the next try, and is logged [A5]', async () => {
    const { error, next_try } = await scene.reaches('dying', 'backing_off');
    const why = `The server process exited with code 3; last output: FATAL: the variable API_TOKEN is not set`;
    expect(error).toBe(`Server "dying" is not available: ${why}`);
    expect(await scene.view('dying')).toMatchObject({ state: 'backing_off', error, next_try });
    expect(await scene.log('dying')).toEqual(expect.arrayContaining(['loading …', error]));
    const refused = await scene.beside(() => scene.errorOf('dying__anything'));
    expect(refused).toMatchObject({
      code: -32603,
      message: error,
      data: { code: 'server_unavailable', server: 'dying' },
    });
    expect(await scene.log('dying')).toContain(`a call failed: ${error}`);
    await scene.switchboard.event(({ message }) => message === `Project "default": a call failed: ${error}`);
  });
});

it('a server that dies at start is retried with growing delays, and clients are notified', async () => {
  await using folder = await temporaryFolder();
  const starts = `${folder.path}/starts`;
  // The first start counts twice: the process may have exited only because of era detection.
  await using scene = await Scene.start(
    { recovering: fixtureServer('fails-first-starts', { START_COUNT: starts, FAILING_STARTS: '5' }) },
    { backoffFirstMs: 40, breakerFailures: 10 },
  );
  const stream = await scene.session.listen();
  await scene.reaches('recovering', 'ready');
  await stream.message(({ method }) => method === 'notifications/tools/list_changed');
  expect(await scene.session.toolNames()).toContain('recovering__echo');
  expect(await scene.echoOf('recovering__echo', { text: 'back' })).toMatchObject({
    name: 'fails-first-starts',
  });

  const waits = scene.changesTo('recovering', 'backing_off').map(({ since, next_try, error }) => {
    expect(error).toContain('FATAL: not yet');
    return Date.parse(next_try!) - Date.parse(since);
  });
  expect(waits).toHaveLength(4);
  waits.forEach((wait, failures) => {
    expect(wait).toBeGreaterThanOrEqual((40 * 2 ** failures) / 2);
    expect(wait).toBeLessThanOrEqual(40 * 2 ** failures);
  });
});

function textOf(params: unknown): unknown {
  return (params as { arguments?: { text?: unknown } }).arguments?.text;
}
