import { describe, expect, it } from 'vitest';
import { exchange, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const limit = 32 * 1024 * 1024;
const missing = 'a-program-that-does-not-exist';

let switchboard: RunningSwitchboard;
let session: RawSession;
let witness: Witness;

setUp(async (use) => {
  witness = use(await Witness.open());
  switchboard = use(
    await startSwitchboard(
      {
        noisy: fixtureServer('prints-junk'),
        dribbling: fixtureServer('writes-byte-by-byte'),
        bursting: { ...fixtureServer('batches-responses'), concurrency: 50 },
        bulky: fixtureServer('answers-any-size'),
        hasty: fixtureServer('exits-after-response'),
        deaf: fixtureServer('stops-reading', witness.env('deaf')),
        box: fixtureServer('toolbox', witness.env('box')),
        missing: { command: missing },
        homeless: { command: process.execPath, cwd: '/no/such/folder' },
        dying: fixtureServer('fails-to-start'),
        futuristic: fixtureServer('speaks-unknown-version'),
      },
      {
        maxMessageBytes: limit,

        naming: 'always',
      },
    ),
  );
  session = await RawSession.open(switchboard.url);
  await session.toolNames();
});

async function logOf(server: string): Promise<string[]> {
  const url = `${switchboard.baseUrl}/api/v1/projects/default/servers/${server}/logs`;
  const { json } = await exchange(url, { method: 'GET' });
  return (json as unknown as { lines: string[] }).lines;
}

describe('messages on stdout', () => {
  it('are read between other lines, which are logged', async () => {
    expect(await session.callText('noisy__work')).toBe('worked');
    const log = (await logOf('noisy')).join('\n');
    expect(log).toContain('skipped a line that is not JSON-RPC: Starting server…');
    expect(log).toContain('skipped a line that is not JSON-RPC: DEBUG handling tools/call');
    expect(log).toContain('skipped an invalid message');
    expect(log).toContain('dropped a response to no pending request (id 999)');
  });

  it('may be split anywhere, even inside a character', async () => {
    const text = 'Grüße, 世界, 🎼\u0000 "quoted" \\ and \n broken';
    expect(await session.callText('dribbling__echo', { text })).toBe(text);
  });

  it('may arrive many at once', async () => {
    const texts = Array.from({ length: 50 }, (_, index) => `text ${index}`);
    const answers = texts.map((text) => session.callText('bursting__echo', { text, together: texts.length }));
    expect(await Promise.all(answers)).toEqual(texts);
  });

  it('may end with the process instead of a line break', async () => {
    expect(await session.callText('hasty__leave')).toBe('bye');
  });

  it.each([false, true])('may be large (id at the end: %s)', async (idAtEnd) => {
    const text = await session.callText('bulky__bulk', { bytes: 20_000_000, idAtEnd });
    expect(text === 'ü'.repeat(10_000_000)).toBe(true);
  });

  it.each([false, true])(
    'that are too large fail only their own call (id at the end: %s)',
    async (idAtEnd) => {
      const { error } = await session.call('bulky__bulk', { bytes: limit, idAtEnd });
      expect(error).toMatchObject({
        message: `Server "bulky": The server sent a message over ${limit} bytes (setting maxMessageBytes).`,
        data: { code: 'answer_too_large', server: 'bulky' },
      });
      expect(await session.callText('bulky__small')).toBe('üü');
    },
  );
});

describe('a server that does not start', () => {
  it.each([
    ['missing', `"${missing}" was not found`],
    ['homeless', 'the folder /no/such/folder does not exist'],
    ['dying', 'exited with code 3; last output: FATAL: the variable API_TOKEN is not set'],
    ['futuristic', 'supports protocol 2099-01-01; Switchboard supports 2026-07-28, 2025-11-25'],
  ])('(%s) reports the reason', async (name, why) => {
    const { error } = await switchboard.event(
      ({ event, name: server, state }) => event === 'server' && server === name && state === 'backing_off',
    );
    expect(error).toContain(`Server "${name}"`);
    expect(error).toContain(why);
  });

  it('has its output in the log', async () => {
    expect(await logOf('dying')).toEqual(expect.arrayContaining(['loading …']));
  });

  it('before the timeout is given up, and its process is killed', async () => {
    await using impatient = await startSwitchboard(
      { silent: fixtureServer('never-responds', witness.env('silent')) },
      { connectTimeoutMs: 1_000, startup: 'parallel' },
    );
    const { error } = await impatient.event(({ state }) => state === 'backing_off');
    expect(error).toContain('did not complete the handshake within 1000 ms (setting connectTimeoutMs)');
    await witness.sees('silent', 'end');
  });
});

describe('a server that does not read its input', () => {
  it('fails the calls that do not fit into its pipe, and does not delay other servers', async () => {
    const text = 'x'.repeat(12_000_000);
    // Three calls fill the pipe, and the fourth finds no room; a fifth might come after the server restarted.
    const calls = Array.from({ length: 4 }, () => session.call('deaf__listen', { text }));
    const { error } = await Promise.race(calls);
    expect(error?.message).toBe('Server "deaf": The server does not read its stdin.');
    expect(await session.callText('box__echo', { text: 'hi' })).toBe('hi');
    witness.tell('deaf', 'end');
    for (const { error: late } of await Promise.all(calls)) expect(late?.message).toContain('Server "deaf"');
  });
});
