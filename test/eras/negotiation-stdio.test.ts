import { describe, expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { RawModern } from './raw-modern.ts';

const kinds = ['legacy', 'strict', 'modern', 'both', 'touchy', 'deaf', 'mute'] as const;
type Kind = (typeof kinds)[number];

describe('a server over stdio', () => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let session: RawSession;
  const methodsOf = (kind: Kind | 'slow') => witness.seenBy(kind, 'gets').map(({ method }) => method);
  /** The first `count` methods that the server received. */
  const opening = async (kind: Kind | 'slow', count: number) =>
    (await witness.severalOf(kind, 'gets', count)).map(({ method }) => method);
  const echo = (kind: Kind) => session.request('tools/call', { name: `${kind}__echo`, arguments: { kind } });

  setUp(async (use) => {
    witness = use(await Witness.open());
    const servers = kinds.map((kind) => [
      kind,
      fixtureServer('eras/speaks-given-era', witness.env(kind), kind),
    ]);
    const { command, args, env } = fixtureServer('eras/speaks-given-era', witness.env('slow'), 'both');
    const slow = { command: 'sh', args: ['-c', 'sleep 6; exec "$0" "$@"', command, ...args], env };
    switchboard = use(
      await startSwitchboard(
        { ...Object.fromEntries(servers), slow },
        { naming: 'always', backoffFirstMs: 10 },
      ),
    );
    session = await RawSession.open(switchboard.url);
    // The first calls, before any list was requested.
    const answers = await Promise.all(kinds.map(echo));
    for (const { error } of answers) expect(error).toBeUndefined();
  });

  it.each<[Kind, string[]]>([
    ['legacy', ['server/discover', 'initialize', 'notifications/initialized']],
    ['strict', ['server/discover', 'initialize', 'notifications/initialized']],
  ])('that is %s gets initialize after discovery, in one process', async (kind, methods) => {
    expect(await opening(kind, methods.length)).toEqual(methods);
    await witness.severalOf(kind, 'is', 1);
    expect(witness.seenBy(kind, 'is')).toHaveLength(1);
  });

  it('that speaks both gets initialize in a second process, which serves legacy clients', async () => {
    const [first, second] = await witness.severalOf('both', 'is', 2);
    const methodsIn = (pid: number | undefined) =>
      witness.seenBy('both', 'gets').flatMap((sighting) => (sighting.pid === pid ? [sighting.method] : []));
    await witness.sees('both', 'gets', ({ method }) => method === 'tools/call');
    expect(methodsIn(first?.pid)[0]).toBe('server/discover');
    expect(methodsIn(first?.pid)).not.toContain('tools/call');
    expect(methodsIn(second?.pid).slice(0, 2)).toEqual(['initialize', 'notifications/initialized']);
    expect(methodsIn(second?.pid)).toContain('tools/call');
    expect(witness.seenBy('both', 'is')).toHaveLength(2);
  });

  it.each<[Kind]>([['modern'], ['mute']])(
    'that is %s gets initialize once, in a process that exits, and calls in the process that got discovery',
    async (kind) => {
      const [first, second] = await witness.severalOf(kind, 'is', 2);
      await witness.sees(kind, 'end', ({ pid }) => pid === second?.pid);
      const { pid } = await witness.sees(kind, 'gets', ({ method }) => method === 'tools/call');
      expect(pid).toBe(first?.pid);
      expect(witness.seenBy(kind, 'is')).toHaveLength(2);
      expect(methodsOf(kind).filter((method) => method === 'initialize')).toHaveLength(1);
    },
  );

  it('that speaks both, and starts so slowly that it gets initialize, gets modern calls too', async () => {
    expect((await session.call('slow__echo')).error).toBeUndefined();
    expect((await opening('slow', 2)).slice(0, 2)).toEqual(['server/discover', 'initialize']);
    expect((await new RawModern(switchboard.url).call('slow__echo')).error).toBeUndefined();
    const calls = await witness.severalOf('slow', 'gets', 2, ({ method }) => method === 'tools/call');
    expect(new Set(calls.map(({ pid }) => pid))).toEqual(
      new Set(witness.seenBy('slow', 'is').map(({ pid }) => pid)),
    );
    expect(methodsOf('slow').filter((method) => method === 'initialize')).toHaveLength(1);
    expect(witness.seenBy('slow', 'is')).toHaveLength(2);
  });

  it('that exits on discovery is started once more, and gets initialize', async () => {
    expect(await opening('touchy', 2)).toEqual(['server/discover', 'initialize']);
    await witness.severalOf('touchy', 'is', 2);
    expect(witness.seenBy('touchy', 'is')).toHaveLength(2);
    expect(methodsOf('touchy').filter((method) => method === 'tools/call')).toHaveLength(1);
  });

  it('that exits on discovery does not get it again when it reconnects', async () => {
    const { pid } = witness.seenBy('touchy', 'is').at(-1)!;
    process.kill(pid, 'SIGKILL');
    await witness.severalOf('touchy', 'is', 3);
    expect((await echo('touchy')).error).toBeUndefined();
    await witness.severalOf('touchy', 'is', 3);
    expect(witness.seenBy('touchy', 'is')).toHaveLength(3);
    expect(methodsOf('touchy').filter((method) => method === 'server/discover')).toHaveLength(1);
  });

  it('that does not respond to discovery gets initialize after a while', async () => {
    expect((await opening('deaf', 3)).slice(0, 2)).toEqual(['server/discover', 'initialize']);
    await witness.severalOf('deaf', 'is', 1);
    expect(witness.seenBy('deaf', 'is')).toHaveLength(1);
  });

  it('gets every call once', () => {
    for (const kind of kinds.filter((one) => one !== 'touchy')) {
      expect(methodsOf(kind).filter((method) => method === 'tools/call')).toHaveLength(1);
    }
  });
});
