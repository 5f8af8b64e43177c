import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HttpPeer } from '../../../test/helpers/http-peer.ts';
import { Inbox } from '../../../test/helpers/inbox.ts';
import { temporaryHome } from '../../../test/helpers/store.ts';
import { fixtureServer } from '../../../test/helpers/switchboard.ts';
import { newWorkspace } from '../../../test/helpers/workspaces.ts';
import { ProcessRecord } from '../../channels/process-record.ts';
import type { Store } from '../../store/store.ts';
import type { WorkspaceRow, WorkspaceStatus } from '../../store/workspaces.ts';
import type { Server } from '../../upstreams/server.ts';
import type { Projects } from '../projects.ts';
import { Vault } from '../vault.ts';
import { Hosting } from './hosting.ts';

const NO_ENGINE = '/nonexistent/docker.sock';

/** A project with one persisted server, and a database whose host role the test sets. */
async function hostOne(change: {
  row?: Partial<WorkspaceRow>;
  config?: Partial<WorkspaceRow['mcp_config']>;
}) {
  const home = await temporaryHome();
  const record = ProcessRecord.open(join(home.path, 'run'), () => {});
  const { command, args } = fixtureServer('runs-commands');
  const { mcp_config, ...workspace } = newWorkspace('probe');
  const config = { ...mcp_config, command, args, environment: {}, volumes: [], ...change.config };
  const row = { id: randomUUID(), provider: null, metadata: {}, ...workspace, ...change.row };
  const project = {
    ...{ id: randomUUID(), name: 'default', isDefault: true },
    hosted: [{ ...row, mcp_config: config }],
    vault: new Vault(() => ''),
    servers: { get: () => undefined },
  };
  /** No client connects here, so the handshake is reported at once. */
  const shake = () => hosting.connected({ config: { transport: { type: 'hosted', id: row.id } } } as Server);
  const notes = new Inbox<Partial<WorkspaceStatus>>();
  let tell = (_isHost: boolean) => {};
  const store = {
    isConnected: true,
    contendForHost(told: (isHost: boolean) => void) {
      tell = told;
      return () => {};
    },
    hosted: { setStatus: async (_id: string, status: Partial<WorkspaceStatus>) => notes.add(status) },
  };
  const hosting = new Hosting({
    settings: {
      ...{ engine: NO_ENGINE, runtimes: { gvisor: 'runsc' }, allow: ['process'], callTimeoutMs: 30_000 },
      ...{ heartbeatMs: 30_000, heartbeatTimeoutMs: 10_000, volumeImages: true },
    },
    projects: { list: () => [project], lookUp: () => project } as unknown as Projects,
    store: store as unknown as Store,
    home: home.path,
    children: record,
    warned() {},
    changed: () => void setImmediate(shake),
    recorded() {},
  });
  onTestFinished(async () => {
    await hosting.close();
    record.close();
    await home[Symbol.asyncDispose]();
  });
  hosting.start();
  return { hosting, id: row.id, project, notes, becomesHost: (isHost: boolean) => tell(isHost) };
}

describe('the hosting process', () => {
  it('runs its servers even if it lost the host role briefly at the start', async () => {
    const { hosting, id, becomesHost } = await hostOne({});
    becomesHost(true);
    becomesHost(false);
    await hosting.settled();
    becomesHost(true);
    expect(await hosting.attach(id)).toMatchObject({ kind: 'stdio' });
  });

  it('is awaited by an early restart', async () => {
    const { hosting, id, becomesHost } = await hostOne({});
    const restart = hosting.requireSupervisor(id).then((supervisor) => supervisor.restart(id));
    becomesHost(true);
    await restart;
    expect(hosting.supervisor?.status(id)).toMatchObject({ status: 'ready' });
  });

  it('sends log lines to subscribers from before it became host', async () => {
    const { hosting, id, becomesHost } = await hostOne({});
    const heard = new Inbox<string>();
    hosting.logs.add(id, { line: ({ line }) => heard.add(line), removed() {} });
    becomesHost(true);
    expect(await heard.first((line) => line.startsWith('running'))).toContain('running (process');
  });

  it('persists nothing while another process may be host, and catches up afterwards', async () => {
    const { hosting, id, notes, becomesHost } = await hostOne({});
    becomesHost(true);
    await notes.first(({ status }) => status === 'ready');
    becomesHost(false);
    const { length } = notes.items;
    await hosting.supervisor!.restart(id);
    expect(notes.items).toHaveLength(length);
    const { instanceId } = hosting.supervisor!.status(id)!;
    becomesHost(true);
    await notes.first(({ provider_workspace_id }) => provider_workspace_id === instanceId);
    expect(notes.items.length).toBe(length + 1);
  });

  it('keeps a server with its former provider, even if that is unavailable at the start', async () => {
    const { hosting, id, notes, project, becomesHost } = await hostOne({ row: { provider: 'gvisor' } });
    becomesHost(true);
    await notes.first(({ status }) => status === 'waiting');
    // As read back from the database.
    const noted = notes.items.findLast(({ provider }) => provider !== undefined)?.provider;
    project.hosted = project.hosted.map((row) => ({
      ...row,
      provider: noted === undefined ? 'gvisor' : noted,
    }));
    hosting.refresh();
    await expect(hosting.supervisor!.restart(id)).rejects.toThrow(
      'The provider "gvisor", which ran the server before, cannot be used',
    );
  });

  it.each(['//', '/\\'])('reaches a server at its port, whatever its path: %j', async (start) => {
    await using own = await HttpPeer.start({});
    await using other = await HttpPeer.start({});
    const { hosting, id, becomesHost } = await hostOne({
      config: {
        ...{ command: process.execPath, args: ['-e', 'setInterval(() => {}, 60_000)'], stdio_bridge: false },
        // A peer listens on the server’s port.
        ...{ port: Number(new URL(own.origin).port), path: `${start}${new URL(other.origin).host}/mcp` },
      },
    });
    becomesHost(true);
    expect(await hosting.attach(id)).toMatchObject({
      kind: 'url',
      url: `${own.origin}//${new URL(other.origin).host}/mcp`,
    });
    expect(own.exchanges.items).toMatchObject([{ method: 'OPTIONS' }]);
    expect(other.exchanges.items).toEqual([]);
  });

  it('hides the environment values of a server, even after a change', async () => {
    const { hosting, id, project, becomesHost } = await hostOne({
      config: { environment: { TOKEN: 'first-value' } },
    });
    becomesHost(true);
    const attachment = await hosting.attach(id);
    if (attachment.kind !== 'stdio') throw new Error('It has no stdio.');
    const changed = (row: (typeof project.hosted)[number]) => ({
      ...row,
      mcp_config: { ...row.mcp_config, environment: { TOKEN: 'second-value' } },
    });
    project.hosted = project.hosted.map(changed);
    const said = Promise.withResolvers<string>();
    hosting.logs.add(id, { line: ({ line }) => line.startsWith('said') && said.resolve(line), removed() {} });
    attachment.input.write('stderr said first-value and second-value\n');
    expect(await said.promise).toBe('said *** and ***');
  });
});
