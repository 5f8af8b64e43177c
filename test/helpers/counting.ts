import type { ServerView } from '../../src/app.ts';
import { RawSession } from './raw-http.ts';
import { serverOf, serverOnce } from './server-states.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from './switchboard.ts';
import { Witness } from './witness.ts';

type Entry = Record<string, unknown>;

/** A server that counts its concurrent calls. */
export async function startCounting(rules: Entry, settings: Entry = {}, others: Entry = {}) {
  const witness = await Witness.open();
  const servers = (box: Entry) => ({
    box: { ...fixtureServer('reports-calls', witness.env('box')), startup: 'parallel', ...box },
    ...others,
  });
  const switchboard = await startSwitchboard(servers(rules), settings);
  const isReady = ({ replicas }: ServerView) => replicas.every(({ state }) => state === 'ready');
  await serverOnce(switchboard, 'box', isReady);
  return {
    witness,
    switchboard,
    open: () => RawSession.open(switchboard.url),
    /** Resolves when this many calls run and wait. */
    loaded: (running: number, waiting: number) => loaded(switchboard, running, waiting),
    /** Sends the calls in this order, whichever connections they use. */
    async lineUp(session: RawSession, texts: string[]): Promise<Promise<string>[]> {
      const answers: Promise<string>[] = [];
      const { in_flight, queued } = await serverOf(switchboard, 'box');
      for (const text of texts) {
        answers.push(work(session, text));
        const expected = in_flight + queued + answers.length;
        await serverOnce(switchboard, 'box', (server) => server.in_flight + server.queued === expected);
      }
      return answers;
    },
    /** The texts of the first `count` calls at the server. */
    worked: async (count: number) => (await witness.severalOf('box', 'work', count)).map(({ text }) => text),
    mostAtOnce: () => Math.max(...witness.seenBy('box', 'work').map(({ atOnce }) => Number(atOnce))),
    finish: (text: string) => witness.tell('box', `finish ${text}`),
    reconfigure: (box: Entry) => switchboard.configure(servers(box), settings),
    async [Symbol.asyncDispose]() {
      await switchboard.stop();
      await witness[Symbol.asyncDispose]();
    },
  };
}

export const loaded = (switchboard: RunningSwitchboard, running: number, waiting: number) =>
  serverOnce(switchboard, 'box', ({ in_flight, queued }) => in_flight === running && queued === waiting);

export const work = (session: RawSession, text: string) => session.callText('work', { text });
export const workAll = (session: RawSession, texts: string[]) => texts.map((text) => work(session, text));
export const numbered = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}${index + 1}`);
