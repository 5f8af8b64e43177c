import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { type ConnectedClient, connectHttp } from '../helpers/clients.ts';
import { allReady, nextState } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { type Sighting, Witness } from '../helpers/witness.ts';

const UPDATED = 'notifications/resources/updated';
const todo = 'resource://pool/note://todo';

type Member = 'one' | 'two';

const updatesOf = ({ notifications }: ConnectedClient) =>
  notifications.items.filter(({ method }) => method === UPDATED).map(({ params }) => params?.uri);
const isSubscription = ({ method }: Sighting) => method === 'resources/subscribe';

/** Two servers with notes in one group, and a client. A server with a closed gate dies on start. */
async function startNotes(backoffMs = 20) {
  const witness = await Witness.open();
  const folder = await temporaryFolder();
  const gate = (member: Member) => join(folder.path, `${member} may start`);
  const notes = (member: Member) => {
    const { command, args, env } = fixtureServer('notes', { ...witness.env(member), NOTES_OF: member });
    const script = '[ -e "$GATE" ] && exec "$0" "$@"';
    return {
      command: 'sh',
      args: ['-c', script, command, ...args],
      env: { ...env, GATE: gate(member) },
      group: 'pool',
      startup: 'parallel',
    };
  };
  await Promise.all([writeFile(gate('one'), ''), writeFile(gate('two'), '')]);
  const switchboard = await startSwitchboard(
    { one: notes('one'), two: notes('two') },
    { backoffFirstMs: backoffMs, backoffMaxMs: backoffMs, breakerFailures: 1_000 },
  );
  await allReady(switchboard, { one: 1, two: 1 });
  const connected = await connectHttp(switchboard.url);
  const { client, notifications } = connected;
  return {
    witness,
    switchboard,
    client,
    connected,
    updatesOf: () => updatesOf(connected),
    updated: (uri: string, count: number) =>
      notifications.several(count, ({ method, params }) => method === UPDATED && params?.uri === uri),
    open: (member: Member) => writeFile(gate(member), ''),
    shut: (member: Member) => rm(gate(member)),
    kill: (member: Member) => {
      const { pid } = witness.seenBy(member, 'start').at(-1)!;
      process.kill(pid, 'SIGKILL');
    },
    /** Makes a server announce a changed note, even without a subscription. */
    touch: (member: Member, uri = 'note://todo') =>
      client.callTool({ name: `${member}__touch`, arguments: { uri } }),
    /** The server with the subscription, and the other one. */
    async teller(): Promise<[Member, Member]> {
      const { who } = await witness.sightings.first(isSubscription);
      return who === 'one' ? ['one', 'two'] : ['two', 'one'];
    },
    subscriptionsOf: (member: Member) => witness.seenBy(member, 'message').filter(isSubscription).length,
    /** Resolves when a server has received `count` subscriptions. */
    subscribed: (member: Member, count = 1) => witness.severalOf(member, 'message', count, isSubscription),
    async [Symbol.asyncDispose]() {
      await connected[Symbol.asyncDispose]();
      await switchboard.stop();
      await witness[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function readText({ client }: Pick<ConnectedClient, 'client'>, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  const [{ uri: given, text }] = contents as [{ uri: string; text: string }];
  expect(given).toBe(uri);
  return text;
}

describe.concurrent('resources and prompts of a group', () => {
  it('are listed once under its name, and read from its servers in turn [G4, G10]', async () => {
    await using notes = await startNotes();
    const { resources } = await notes.client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual([
      todo,
      'resource://pool/note://done',
      'resource://pool/note://only/one',
      'resource://pool/note://only/two',
    ]);
    const texts = [await readText(notes, todo), await readText(notes, todo)];
    expect(texts.toSorted()).toEqual(['note://todo of one', 'note://todo of two']);
    expect(await readText(notes, 'resource://one/note://todo')).toMatch(/of one$/);
    expect(await readText(notes, 'resource://one/note://todo')).toMatch(/of one$/);

    const prompts = [];
    for (let turn = 0; turn < 2; turn++) prompts.push(await notes.client.getPrompt({ name: 'summarize' }));
    const said = prompts.map(({ messages }) => (messages[0]!.content as { text: string }).text);
    expect(said.toSorted()).toEqual(['Notes of one', 'Notes of two']);
    const ofTwo = await notes.client.getPrompt({ name: 'two__summarize' });
    expect(ofTwo.messages[0]!.content).toMatchObject({ text: 'Notes of two' });
  });

  it('that only one server has are read from that server, listed or by template [G4, G10]', async () => {
    await using notes = await startNotes();
    for (let turn = 0; turn < 3; turn++) {
      for (const member of ['one', 'two']) {
        const only = `resource://pool/note://only/${member}`;
        expect(await readText(notes, only)).toBe(`note://only/${member} of ${member}`);
        const day = `resource://pool/note://day/${member}/monday`;
        expect(await readText(notes, day)).toBe(`note://day/${member}/monday of ${member}`);
      }
    }
  });

  it('are completed at the server of their template [G4]', async () => {
    await using notes = await startNotes();
    for (const member of ['one', 'two', 'one', 'two']) {
      const ref = { type: 'ref/resource' as const, uri: `resource://pool/note://day/${member}/{day}` };
      const { completion } = await notes.client.complete({ ref, argument: { name: 'day', value: '' } });
      expect(completion.values[0]).toMatch(new RegExp(`^${member} `));
    }
  });

  it('keep the name of the call in links: that of the group, or of one server [G11]', async () => {
    await using notes = await startNotes();
    const linkOf = async (name: string, uri: string) => {
      const { content } = await notes.client.callTool({ name, arguments: { uri } });
      return (content as [{ uri: string }])[0].uri;
    };
    expect(await linkOf('refer', 'note://todo')).toBe(todo);
    const link = await linkOf('two__refer', 'note://only/two');
    expect(link).toBe('resource://two/note://only/two');
    expect(await readText(notes, link)).toBe('note://only/two of two');
  });
});

describe.concurrent('a subscription to a resource of a group', () => {
  it('is held at one server only, and reports each change once [G13]', async () => {
    await using notes = await startNotes();
    await notes.client.subscribeResource({ uri: todo });
    await notes.client.subscribeResource({ uri: 'note://todo' });
    const [teller, other] = await notes.teller();
    await notes.touch(other);
    await notes.touch(teller);
    await notes.touch(other);
    await notes.touch(teller);
    await Promise.all([notes.updated(todo, 2), notes.updated('note://todo', 2)]);
    expect(notes.updatesOf()).toHaveLength(4);
    expect(notes.subscriptionsOf('one') + notes.subscriptionsOf('two')).toBe(1);
  });

  it('moves to another server when that one dies, and reports once after it is back [G6, G13]', async () => {
    await using notes = await startNotes();
    await notes.client.subscribeResource({ uri: todo });
    const [teller, other] = await notes.teller();
    await notes.touch(teller);
    await notes.updated(todo, 1);
    const back = nextState(notes.switchboard, teller, 'ready');
    notes.kill(teller);
    await Promise.all([back, notes.subscribed(other)]);
    await notes.touch(teller);
    await notes.touch(other);
    await notes.touch(teller);
    await notes.touch(other);
    await notes.updated(todo, 3);
    expect(notes.updatesOf()).toHaveLength(3);

    await notes.client.unsubscribeResource({ uri: todo });
    await notes.witness.sees(other, 'message', ({ method }) => method === 'resources/unsubscribe');
  });

  it('moves to the first server that restarts when all have died [G9, G13]', async () => {
    // Long enough that no restart is tried while the other server dies.
    await using notes = await startNotes(2_000);
    await notes.client.subscribeResource({ uri: todo });
    const [teller, other] = await notes.teller();
    for (const member of [other, teller]) {
      await notes.shut(member);
      const restarted = nextState(notes.switchboard, member, 'starting');
      notes.kill(member);
      await restarted;
      await nextState(notes.switchboard, member, 'backing_off');
    }
    await notes.open(other);
    await notes.subscribed(other);
    await notes.touch(other);
    await notes.updated(todo, 1);

    const back = nextState(notes.switchboard, teller, 'ready');
    await notes.open(teller);
    await back;
    await notes.touch(teller);
    await notes.touch(other);
    await notes.updated(todo, 2);
    expect(notes.updatesOf()).toHaveLength(2);
  });

  it('by the name of a server stays with that server, even after a restart [G13]', async () => {
    await using notes = await startNotes();
    const uri = 'resource://two/note://todo';
    await notes.client.subscribeResource({ uri });
    await notes.subscribed('two');
    notes.kill('two');
    await notes.subscribed('two', 2);
    await notes.touch('two');
    await notes.updated(uri, 1);
    expect(notes.subscriptionsOf('one')).toBe(0);
  });

  it('under the names of the group and of both servers reports once under each [G13]', async () => {
    await using notes = await startNotes();
    const uris = [todo, 'resource://one/note://todo', 'resource://two/note://todo'];
    for (const uri of uris) await notes.client.subscribeResource({ uri });
    await Promise.all([notes.subscribed('one'), notes.subscribed('two')]);
    await notes.touch('one');
    await notes.touch('two');
    await Promise.all(uris.map((uri) => notes.updated(uri, 1)));
    expect(notes.updatesOf()).toHaveLength(3);
    await notes.client.unsubscribeResource({ uri: 'resource://one/note://todo' });
    await notes.client.unsubscribeResource({ uri: todo });
    await notes.witness.sees('one', 'message', ({ method }) => method === 'resources/unsubscribe');
    expect([notes.subscriptionsOf('one'), notes.subscriptionsOf('two')]).toEqual([1, 1]);
    await notes.touch('two');
    await notes.updated('resource://two/note://todo', 2);
  });
});
