import { describe, expect, it } from 'vitest';
import { allReady } from '../helpers/server-states.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { connectPeer } from './clients.ts';
import { textOf } from './messages.ts';
import type { ElicitAnswer, Era } from './peer.ts';

const ada: ElicitAnswer = { action: 'accept', content: { name: 'Ada' } };
const blue: ElicitAnswer = { action: 'accept', content: { colour: 'blue' } };

describe.each<Era>(['legacy', 'modern'])(
  'a %s client of a group with a legacy and a modern server',
  (era) => {
    let switchboard: RunningSwitchboard;
    setUp(async (use) => {
      switchboard = use(
        await startSwitchboard(
          {
            old: { ...fixtureServer('eras/legacy'), group: 'pool' },
            new: { ...fixtureServer('eras/modern'), group: 'pool' },
          },
          { startup: 'parallel' },
        ),
      );
      await allReady(switchboard, { old: 1, new: 1 });
    });

    it('gets responses from either', async () => {
      await using peer = await connectPeer(era, { url: switchboard.url });
      for (let time = 0; time < 6; time++) {
        expect(JSON.parse(textOf(await peer.callTool('echo', { time })))).toEqual({ time });
        expect(JSON.parse(textOf(await peer.callTool('new__echo', { time })))).toEqual({ time });
        expect(JSON.parse(textOf(await peer.callTool('old__echo', { time })))).toEqual({ time });
      }
    });

    it('gets server requests from either, each once', async () => {
      const questions: string[] = [];
      await using peer = await connectPeer(
        era,
        { url: switchboard.url },
        {
          elicit: ({ message }) => {
            questions.push(message);
            return message.includes('colour') ? blue : ada;
          },
        },
      );
      for (let time = 0; time < 4; time++) {
        expect(JSON.parse(textOf(await peer.callTool('ask_twice')))).toEqual({ name: ada, colour: blue });
      }
      expect(questions).toEqual(
        Array.from({ length: 4 }, () => ['What is your name?', 'What is your favourite colour, Ada?']).flat(),
      );
    });
  },
);
