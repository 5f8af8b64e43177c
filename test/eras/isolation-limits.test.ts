import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { EventStream } from '../helpers/raw-http.ts';
import { allReady } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { childrenOf } from '../soak/processes.ts';
import { RawModern } from './raw-modern.ts';

const isolation = 'session';
const named = (url: string, key: string) => new RawModern(url, { headers: { 'x-switchboard-session': key } });

it('a client does not expire while its call is in flight', async () => {
  await using witness = await Witness.open();
  const box = { ...fixtureServer('eras/binds-state-to-process', witness.env('box')), isolation };
  await using switchboard = await startSwitchboard({ box }, { sessionIdleMs: 1, keepAliveMs: 300 });
  await new RawModern(switchboard.url).toolNames();
  const client = named(switchboard.url, 'patient');
  const { response } = client.begin('tools/call', { name: 'hold', arguments: {} });
  // Responses become streams after two checks, and clients have been checked as often by then.
  const stream = new EventStream(await response);
  const { pid } = await witness.sees('box', 'call');
  witness.tell('box', 'go on');
  await stream.ended;
  expect(stream.messages).toMatchObject([{ result: { content: [{ text: String(pid) }] } }]);
});

it('a client is not evicted while its call is in flight', async () => {
  await using witness = await Witness.open();
  const box = { ...fixtureServer('eras/binds-state-to-process', witness.env('box')), isolation };
  await using switchboard = await startSwitchboard({ box }, { maxSessions: 1 });
  const held = named(switchboard.url, 'first').request('tools/call', { name: 'hold', arguments: {} });
  const { pid } = await witness.sees('box', 'call');
  await named(switchboard.url, 'second').toolNames();
  await witness.tell('box', 'go on');
  expect(await held).toMatchObject({ result: { content: [{ text: String(pid) }] } });
});

it('a call that moved to another server leaves nothing at the one that could not start', async () => {
  await using folder = await temporaryFolder();
  const group = 'pool';
  const starts = join(folder.path, 'starts');
  await using switchboard = await startSwitchboard(
    {
      broken: { ...fixtureServer('eras/binds-state-to-process', { ONLY_ONCE: starts }), group, isolation },
      sound: { ...fixtureServer('eras/binds-state-to-process'), group, isolation },
    },
    { startup: 'parallel', backoffFirstMs: 50, backoffMaxMs: 50, breakerFailures: 1_000 },
  );
  await allReady(switchboard, { broken: 1, sound: 1 });
  const client = new RawModern(switchboard.url);
  const calls = 4;
  for (let call = 0; call < calls; call++) await client.callText('whoami');
  const countStarts = async () => (await readFile(starts, 'utf8')).length;
  expect(await countStarts()).toBeGreaterThan(1);
  // A process that was starting when its call ended has exited when only those of the servers are left.
  const settled = () => expect.poll(() => childrenOf(switchboard.process.pid!).length).toBe(2);
  await settled();
  const before = await countStarts();
  for (let call = 0; call < calls; call++) await client.callText('sound__whoami');
  await settled();
  expect(await countStarts()).toBe(before);
});

it('a server gets the log level of a client, even if it was quieter before', async () => {
  const box = { ...fixtureServer('eras/legacy'), isolation };
  await using switchboard = await startSwitchboard({ box });
  const client = named(switchboard.url, 'listener');
  const logged = async (level: string) => {
    const meta = { 'io.modelcontextprotocol/logLevel': level };
    const { text } = await client.send('tools/call', { name: 'shout', arguments: { what: level } }, { meta });
    return [...text.matchAll(/"data":"([^"]*)"/g)].map(([, data]) => data);
  };
  expect(await logged('error')).toEqual(['error: error']);
  expect(await logged('info')).toEqual(['info: info', 'error: info']);
});
