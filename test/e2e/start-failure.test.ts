import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli, startCli, temporaryFolder } from '../helpers/cli.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** For commands that exit, or are stopped before they serve clients. */
async function openFolder(mcpServers: object, switchboard: object) {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'mcp.json');
  await writeFile(path, JSON.stringify({ mcpServers, switchboard }));
  const env = { SWITCHBOARD_HOME: folder.path };
  const words = ['up', '--config', path, '--port', '0'];
  return {
    run: (...flags: string[]) => runCli([...words, ...flags], { env }),
    start: (...flags: string[]) => startCli([...words, ...flags], env),
    startList: () => startCli(['ls', '--config', path], env),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const slowStart = { discoveryWaitMs: 3_600_000, connectTimeoutMs: 3_600_000 };

describe.concurrent('onStartFailure: abort', () => {
  it('exits with the reason; started servers are stopped, and later ones never start [M11]', async () => {
    await using witness = await Witness.open();
    await using folder = await openFolder(
      {
        good: fixtureServer('reports-messages', witness.env('good')),
        bad: fixtureServer('fails-to-start', witness.env('bad')),
        never: fixtureServer('reports-messages', witness.env('never')),
      },
      { startup: 'sequential', onStartFailure: 'abort' },
    );
    const { code, stdout, stderr } = await folder.run();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: Server "bad" .*API_TOKEN is not set.*\(onStartFailure is "abort"\)\n$/s);
    expect(stdout).not.toContain('endpoint');
    const { pid } = await witness.sees('good', 'start');
    expect(await witness.sees('good', 'end')).toMatchObject({ pid });
    expect(witness.seenBy('never', 'start')).toEqual([]);
  });

  it('leaves no process behind that ignores signals, or is still in its handshake [M11]', async () => {
    await using witness = await Witness.open();
    await using folder = await openFolder(
      {
        stubborn: fixtureServer('ignores-sigterm', witness.env('stubborn')),
        silent: fixtureServer('never-responds', witness.env('silent')),
        forking: fixtureServer('leaves-grandchild', witness.env('forking')),
        bad: fixtureServer('delays-handshake', witness.env('bad')),
      },
      { startup: 'parallel', onStartFailure: 'abort', ...slowStart },
    );
    await using running = folder.start('--json');
    for (const who of ['stubborn', 'silent', 'forking-grandchild', 'bad']) await witness.sees(who, 'start');
    process.kill((await witness.sees('bad', 'initialize')).pid, 'SIGKILL');
    expect((await running.finished).code).toBe(1);
    const { error } = JSON.parse(running.lines.items.at(-1)!);
    expect(error).toMatchObject({
      code: 'server_start_failed',
      message: expect.stringMatching(/^Server "bad" .*SIGKILL/),
    });
    for (const who of ['stubborn', 'silent', 'forking', 'forking-grandchild']) await witness.sees(who, 'end');
  });

  it('requires every replica', async () => {
    await using folder = await temporaryFolder();
    // A server that exits during era detection is started once more.
    const env = { START_COUNT: join(folder.path, 'starts'), FAILING_STARTS: '4' };
    await using config = await openFolder(
      { many: { ...fixtureServer('fails-first-starts', env), replicas: 3, startup: 'parallel' } },
      { onStartFailure: 'abort' },
    );
    const { code, stderr } = await config.run();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: Server "many" .*FATAL: not yet/s);
  });

  it('names what is missing in the configuration', async () => {
    await using folder = await openFolder(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how variables are written
      { bad: { command: 'x', env: { TOKEN: '${SURELY_NOT_SET}' }, startup: 'parallel' } },
      { onStartFailure: 'abort' },
    );
    const { code, stderr } = await folder.run();
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/"bad".*SURELY_NOT_SET/s);
  });

  it('serves clients only when all servers are ready, and does not start lazy ones', async () => {
    await using witness = await Witness.open();
    await using folder = await openFolder(
      {
        late: { ...fixtureServer('delays-handshake', witness.env('late')), startup: 'sequential' },
        lazy: fixtureServer('fails-to-start'),
      },
      { onStartFailure: 'abort', ...slowStart },
    );
    await using running = folder.start('--json');
    await witness.sees('late', 'initialize');
    expect(running.lines.items.filter((line) => line.includes('"listening"'))).toEqual([]);
    witness.tell('late', 'answer');
    await running.lines.first((line) => line.includes('"listening"'));
    const events = running.lines.items.map((line) => JSON.parse(line));
    const states = events
      .filter(({ name }) => name !== undefined)
      .map(({ name, state }) => `${name} ${state}`);
    expect(states).toContain('late ready');
    expect(states).not.toContain('lazy starting');
    running.process.kill('SIGTERM');
    expect((await running.finished).code).toBe(0);
  });

  it('and --startup sequential are flags too, which override the file', async () => {
    await using witness = await Witness.open();
    await using folder = await openFolder(
      {
        good: { ...fixtureServer('reports-messages', witness.env('good')), startup: 'lazy' },
        bad: fixtureServer('fails-to-start'),
        never: fixtureServer('reports-messages', witness.env('never')),
      },
      { startup: 'parallel', onStartFailure: 'continue' },
    );
    const { code, stderr } = await folder.run('--startup', 'sequential', '--on-start-failure', 'abort');
    expect(code).toBe(1);
    expect(stderr).toContain('Server "bad"');
    await witness.sees('good', 'end');
    expect(witness.seenBy('never', 'start')).toEqual([]);
  });
});

describe.concurrent('Ctrl-C during a slow start', () => {
  it.each(['abort', 'continue'])('exits cleanly if onStartFailure is %s', async (onStartFailure) => {
    await using witness = await Witness.open();
    await using folder = await openFolder(
      {
        ready: fixtureServer('reports-messages', witness.env('ready')),
        silent: fixtureServer('never-responds', witness.env('silent')),
        never: fixtureServer('reports-messages', witness.env('never')),
      },
      { startup: 'sequential', onStartFailure, ...slowStart },
    );
    await using running = folder.start('--json');
    await witness.sees('silent', 'start');
    running.process.kill('SIGINT');
    expect(await running.finished).toEqual({ code: 0, stderr: '' });
    for (const who of ['ready', 'silent']) await witness.sees(who, 'end');
    expect(witness.seenBy('never', 'start')).toEqual([]);
  });

  it('twice exits at once, and leaves nothing behind', async () => {
    await using witness = await Witness.open();
    await using folder = await openFolder(
      {
        stubborn: fixtureServer('ignores-sigterm', witness.env('stubborn')),
        silent: fixtureServer('never-responds', witness.env('silent')),
      },
      { startup: 'sequential', onStartFailure: 'abort', ...slowStart },
    );
    await using running = folder.start('--json');
    await witness.sees('silent', 'start');
    running.process.kill('SIGINT');
    await witness.sees('stubborn', 'SIGTERM');
    running.process.kill('SIGINT');
    expect((await running.finished).code).toBe(130);
    for (const who of ['stubborn', 'silent']) await witness.sees(who, 'end');
  });

  it('in a command with temporary servers leaves nothing behind', async () => {
    await using witness = await Witness.open();
    await using folder = await openFolder(
      {
        ready: fixtureServer('reports-messages', witness.env('ready')),
        silent: fixtureServer('never-responds', witness.env('silent')),
      },
      { startup: 'sequential', onStartFailure: 'abort', ...slowStart },
    );
    await using listing = folder.startList();
    await witness.sees('silent', 'start');
    listing.process.kill('SIGINT');
    expect(await listing.finished).toEqual({ code: 130, stderr: '' });
    for (const who of ['ready', 'silent']) await witness.sees(who, 'end');
  });
});
