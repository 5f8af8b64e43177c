import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { askedBy, comeBack, textIn } from './asked.ts';
import { RawModern } from './raw-modern.ts';

describe('calls suspended for their clients', () => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let client: RawModern;

  const start = async (settings: object) => {
    const asker = { ...fixtureServer('eras/asks-client', witness.env('asker')), concurrency: 1 };
    const other = fixtureServer('eras/asks-client', witness.env('other'));
    return startSwitchboard({ asker, other }, { naming: 'always', ...settings });
  };
  setUp(async (use) => {
    witness = use(await Witness.open());
  });

  describe('with a time limit', () => {
    setUp(async (use) => {
      switchboard = use(await start({ inputWaitMs: 300 }));
      client = new RawModern(switchboard.url, { capabilities: { elicitation: {} } });
    });

    it('expire: the server request is declined, the call cancelled, the slot free', async () => {
      const asked = askedBy(await client.call('asker__ask', { key: 'left' }));
      const [declined, cancelled] = await Promise.all([
        witness.sees('asker', 'told', ({ key }) => key === 'left'),
        witness.sees('asker', 'cancelled', ({ key }) => key === 'left'),
      ]);
      expect(declined.answer).toMatchObject({ message: expect.stringContaining('disconnected') });
      expect(cancelled).toBeDefined();
      expect(textIn(await client.call('asker__echo', { after: 1 }))).toBe('{"after":1}');
      const { error } = await client.call('asker__ask', { key: 'left' }, comeBack(asked));
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('expired') });
      expect(error?.message).toContain('without it');
    });

    it('do not keep the next call from asking', async () => {
      askedBy(await client.call('other__ask', { key: 'left too' }));
      await witness.sees('other', 'cancelled', ({ key }) => key === 'left too');
      // On a busy machine the client may be too late.
      for (;;) {
        const asked = askedBy(await client.call('other__ask', { key: 'next' }));
        const answer = await client.call('other__ask', { key: 'next' }, comeBack(asked));
        if (answer.error?.message.includes('expired')) continue;
        expect(textIn(answer)).toContain('Ada');
        break;
      }
    });
  });

  describe('with a number limit', () => {
    setUp(async (use) => {
      switchboard = use(await start({ maxHeldCalls: 1 }));
      client = new RawModern(switchboard.url, { capabilities: { elicitation: {} } });
    });

    it('are limited: further requests are declined, and the suspended calls continue', async () => {
      const asked = askedBy(await client.call('asker__ask', { key: 'first' }));
      const beyond = JSON.parse(textIn(await client.call('other__ask', { key: 'second' })));
      expect(beyond).toMatchObject({ message: expect.stringContaining('maxHeldCalls') });
      expect(textIn(await client.call('asker__ask', { key: 'first' }, comeBack(asked)))).toContain('Ada');
      const room = askedBy(await client.call('other__ask', { key: 'third' }));
      expect(textIn(await client.call('other__ask', { key: 'third' }, comeBack(room)))).toContain('Ada');
    });
  });
});
