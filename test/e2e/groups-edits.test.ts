import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { connectHttp } from '../helpers/clients.ts';
import { FastClient } from '../helpers/fast-client.ts';
import { load } from '../helpers/load.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { type Answerer, allReady, tally } from '../helpers/server-states.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { type Sighting, Witness } from '../helpers/witness.ts';

async function edit({ configure, events, event }: RunningSwitchboard, mcpServers: object) {
  const past = new Set(events);
  await configure(mcpServers);
  return event((candidate) => candidate.event === 'configuration' && !past.has(candidate));
}

async function whoami(session: RawSession, params: object = {}): Promise<Answerer> {
  const { result } = await session.request('tools/call', { name: 'whoami', arguments: {}, ...params });
  return JSON.parse((result!.content as [{ text: string }])[0].text) as Answerer;
}

async function pids(session: RawSession, calls: number): Promise<Set<string>> {
  const seen = new Set<string>();
  for (let call = 0; call < calls; call++) seen.add(await session.callText('pid'));
  return seen;
}

describe.concurrent('an edit at run time', () => {
  it('of labels applies to the next call, and restarts nothing [G5]', async () => {
    const member = (name: string, region: string) => ({
      ...fixtureServer('hangs-in-call', { FIXTURE_NAME: name }),
      group: 'pool',
      labels: { region },
    });
    await using switchboard = await startSwitchboard({ one: member('one', 'eu'), two: member('two', 'us') });
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    const european = { _meta: { 'dev.switchboard/prefer': { labels: { region: 'eu' } } } };
    const american = { _meta: { 'dev.switchboard/prefer': { labels: { region: 'us' } } } };
    const [inEurope, inAmerica] = [await whoami(session, european), await whoami(session, american)];
    expect([inEurope.name, inAmerica.name]).toEqual(['one', 'two']);
    const swapped = { one: member('one', 'us'), two: member('two', 'eu') };
    expect(await edit(switchboard, swapped)).toMatchObject({
      started: [],
      changed: ['one', 'two'],
      stopped: [],
    });
    expect(await whoami(session, european)).toEqual(inAmerica);
    expect(await whoami(session, american)).toEqual(inEurope);
  });

  it('of timeoutMs applies to the next call, and restarts nothing', async () => {
    const box = { ...fixtureServer('hangs-in-call'), replicas: 2 };
    await using switchboard = await startSwitchboard({ box });
    const session = await RawSession.open(switchboard.url);
    const before = new Set([(await whoami(session)).pid, (await whoami(session)).pid]);
    expect(await edit(switchboard, { box: { ...box, timeoutMs: 50 } })).toMatchObject({ changed: ['box'] });
    expect(await session.call('hang')).toMatchObject({
      error: { data: { code: 'call_timeout', timeoutMs: 50 } },
    });
    expect(await edit(switchboard, { box })).toMatchObject({ changed: ['box'] });
    const after = [(await whoami(session)).pid, (await whoami(session)).pid];
    for (const pid of before) expect(after).toContain(pid);
  });

  it('of concurrency admits queued calls, and restarts nothing', async () => {
    await using witness = await Witness.open();
    const box = { ...fixtureServer('toolbox', witness.env('box')), concurrency: 1 };
    await using switchboard = await startSwitchboard({ box });
    const session = await RawSession.open(switchboard.url);
    const orders = ['a', 'b', 'c'];
    const waits = orders.map((order) => session.callText('wait', { order }));
    await witness.sees('box', 'waiting');
    expect(await edit(switchboard, { box: { ...box, concurrency: 3 } })).toMatchObject({ changed: ['box'] });
    await witness.severalOf('box', 'waiting', 3);
    for (const order of orders) witness.tell('box', order);
    expect(await Promise.all(waits)).toEqual(['waited', 'waited', 'waited']);
    await witness.severalOf('box', 'start', 1);
    expect(witness.seenBy('box', 'start')).toHaveLength(1);
  });

  it('of replicas starts new ones, and the old ones finish their calls', async () => {
    await using witness = await Witness.open();
    const box = fixtureServer('toolbox', witness.env('box'));
    await using switchboard = await startSwitchboard({ box });
    const session = await RawSession.open(switchboard.url);
    const [old] = await pids(session, 1);
    const waiting = session.callText('wait');
    await witness.sees('box', 'waiting');
    expect(await edit(switchboard, { box: { ...box, replicas: 3 } })).toMatchObject({
      started: ['box'],
      stopped: ['box'],
    });
    witness.tell('box', 'go');
    expect(await waiting).toBe('waited');
    await witness.sees('box', 'end', ({ pid }) => String(pid) === old);
    await session.callText('echo', { text: 'wakes them up' });
    await allReady(switchboard, { box: 3 });
    const replicas = await pids(session, 6);
    expect(replicas.size).toBe(3);
    expect(replicas).not.toContain(old);
  });

  it('fails no call and repeats none, whatever is edited', async () => {
    await using folder = await temporaryFolder();
    const ledger = join(folder.path, 'ledger');
    const box = {
      ...fixtureServer('answers-after-cancel', { FIXTURE_LEDGER: ledger }),
      replicas: 2,
      startup: 'parallel',
    };
    await using switchboard = await startSwitchboard({ box });
    await allReady(switchboard, { box: 2 });
    await using client = await FastClient.connect(switchboard.url);
    let isEditing = true;
    const loaded = load(client, 'count', 16, () => isEditing);
    for (const change of [
      { replicas: 3 },
      { replicas: 3, labels: { region: 'eu' } },
      { replicas: 3, concurrency: 4 },
      { replicas: 1 },
      { replicas: 1, timeoutMs: 20_000 },
      { replicas: 2 },
    ]) {
      await edit(switchboard, { box: { ...box, ...change } });
    }
    isEditing = false;
    const results = await loaded;
    expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
    const lines = (await readFile(ledger, 'utf8')).trim().split('\n');
    const executions = tally(lines.map((line) => (JSON.parse(line) as { key: string }).key));
    expect(executions.size).toBe(results.length);
    expect(new Set(executions.values())).toEqual(new Set([1]));
  });
});

describe.concurrent('a server that joins a group at run time', () => {
  it('shares the calls until it leaves, and keeps its process [G4]', async () => {
    const [one, two] = [fixtureServer('answers-after-cancel'), fixtureServer('hangs-in-call')];
    await using switchboard = await startSwitchboard({ one, two });
    const session = await RawSession.open(switchboard.url);
    expect(await session.toolNames()).toContain('one__whoami');
    const alone = [await session.callText('one__whoami'), await session.callText('two__whoami')];

    const group = 'pool';
    const joined = { one: { ...one, group }, two: { ...two, group } };
    expect(await edit(switchboard, joined)).toMatchObject({ started: [], stopped: [] });
    const names = await session.toolNames();
    expect(names).toContain('whoami');
    expect(names).not.toContain('one__whoami');
    const shared = [await session.callText('whoami'), await session.callText('whoami')];
    expect(shared.toSorted()).toEqual(alone.toSorted());
    expect(await session.callText('two__whoami')).toBe(alone[1]);

    await edit(switchboard, { one: { ...one, group }, two });
    expect(await session.toolNames()).toEqual(expect.arrayContaining(['pool__whoami', 'two__whoami']));
    for (let call = 0; call < 3; call++) expect(await session.callText('pool__whoami')).toBe(alone[0]);
    expect(await session.callText('two__whoami')).toBe(alone[1]);
  });

  it('and leaves passes its subscriptions to the others [G13]', async () => {
    await using witness = await Witness.open();
    const notes = (name: string, group: string) => ({
      ...fixtureServer('notes', { ...witness.env(name), NOTES_OF: name }),
      group,
    });
    await using switchboard = await startSwitchboard({
      one: notes('one', 'pool'),
      two: notes('two', 'pool'),
    });
    await using connected = await connectHttp(switchboard.url);
    const { client, notifications } = connected;
    const uri = 'resource://pool/note://todo';
    await client.subscribeResource({ uri });
    const asksTo = (method: string) => (sighting: Sighting) => sighting.method === `resources/${method}`;
    const { who: teller } = await witness.sightings.first(asksTo('subscribe'));
    const other = teller === 'one' ? 'two' : 'one';

    await edit(switchboard, { [teller]: notes(teller, 'elsewhere'), [other]: notes(other, 'pool') });
    await witness.sees(other, 'message', asksTo('subscribe'));
    await witness.sees(teller, 'message', asksTo('unsubscribe'));
    for (const name of [teller, other, teller, other]) {
      await client.callTool({ name: `${name}__touch`, arguments: { uri: 'note://todo' } });
    }
    const isUpdate = ({ method }: { method: string }) => method === 'notifications/resources/updated';
    const updates = await notifications.several(2, isUpdate);
    expect(updates.map(({ params }) => params?.uri)).toEqual([uri, uri]);
    expect(notifications.items.filter(isUpdate)).toHaveLength(2);
    await witness.severalOf(teller, 'start', 1);
    expect(witness.seenBy(teller, 'start')).toHaveLength(1);
  });
});
