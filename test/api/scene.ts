import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { exchange, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

/** The real program with one server, and without commands that generated servers could run. */
export interface Scene extends AsyncDisposable {
  switchboard: RunningSwitchboard;
  url: string;
  folder: string;
  /** Fails unless Switchboard is healthy. */
  checkHealth(): Promise<void>;
}

export async function openScene(): Promise<Scene> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'empty');
  await mkdir(path);
  const switchboard = await startSwitchboard(
    { box: fixtureServer('toolbox') },
    {},
    { env: { PATH: path }, database: 'shared' },
  );
  const url = `${switchboard.baseUrl}/api/v1`;
  await checkThatNothingIsFound(url);
  return {
    switchboard,
    url,
    folder: folder.path,
    async checkHealth() {
      const { json } = await exchange(`${url}/status`, { method: 'GET' });
      expect(json).toMatchObject({ database: { mode: 'server', connected: true, error: null } });
      for (const place of ['servers/box', 'tools/box__echo']) {
        const answer = await exchange(`${url}/projects/default/${place}`, {
          method: 'PATCH',
          headers: { 'content-type': 'application/json' },
          body: { enabled: true },
        });
        expect(answer.status, answer.text).toBe(200);
      }
      const session = await RawSession.open(switchboard.url);
      expect(await session.callText('box__echo', { text: 'well' })).toBe('well');
      await session.end();
      const faults = switchboard.events.filter(({ message }) => String(message).includes('internal error'));
      expect(faults).toEqual([]);
    },
    async [Symbol.asyncDispose]() {
      await switchboard.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Traces of the program or its database. */
export const innards = /\\n\s+at |\bat \S+ \(|node:internal|\.[jt]s:\d|violates|relation \\?"/;

async function checkThatNothingIsFound(url: string): Promise<void> {
  const servers = `${url}/projects/default/servers`;
  const headers = { 'content-type': 'application/json' };
  const body = { name: 'lister', transport: 'stdio', config: { command: 'ls' } };
  expect((await exchange(servers, { headers, body })).status).toBe(201);
  const { text } = await exchange(`${servers}/lister/test`, { headers });
  expect(text).toContain('was not found');
  await exchange(`${servers}/lister`, { method: 'DELETE' });
}
