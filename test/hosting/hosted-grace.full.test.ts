import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { HostingSite, sharedProcessSite } from './hosting-site.ts';

describe.concurrent('a server that ignores SIGTERM', () => {
  const openLocal = sharedProcessSite();

  it('[H12] is killed 10 seconds after a restart request', async () => {
    const site = await openLocal();
    const { witness } = site.site;
    const before = await site.host(site.process('ignores-sigterm', witness.env('restarted')));
    const { id } = before;
    expect(await site.tool(id, 'stay')).toBe('here');
    const restarted = site.site.done(`POST /mcp/servers/${id}/restart`);
    await witness.sees('restarted', 'SIGTERM');
    const begin = performance.now();
    expect(await site.reaches(id, ({ status }) => status === 'restarting')).toMatchObject({
      container_status: 'restarting',
    });
    await witness.sees('restarted', 'end');
    expect(performance.now() - begin).toBeGreaterThan(9_000);
    const { provider_workspace_id } = before;
    expect(await restarted).not.toMatchObject({ provider_workspace_id });
    // Killed too, so that the end of the test does not wait for it.
    const { pid } = JSON.parse(await site.tool(id, 'whoami')) as { pid: number };
    await site.site.done(`PATCH /mcp/servers/${id}`, { restart_policy: 'never' });
    process.kill(pid, 'SIGKILL');
    await site.reaches(id, ({ status }) => status === 'failed');
  });

  it('[H11] is killed 30 seconds after Switchboard is stopped', async () => {
    await using site = await HostingSite.start();
    const { witness } = site.site;
    const stubborn = await site.host(site.process('ignores-sigterm', witness.env('stubborn')));
    const willing = await site.host(site.process('toolbox', witness.env('willing')));
    expect(await site.tool(stubborn.id, 'stay')).toBe('here');
    expect(await site.tool(willing.id, 'echo', { text: 'yes' })).toBe('yes');
    const { process } = site.site.switchboard;
    const exited = once(process, 'exit');
    process.kill('SIGTERM');
    await witness.sees('stubborn', 'SIGTERM');
    const begin = performance.now();
    await witness.sees('willing', 'end');
    expect(process.exitCode).toBe(null);
    await witness.sees('stubborn', 'end');
    expect(performance.now() - begin).toBeGreaterThan(29_000);
    expect(await exited).toEqual([0, null]);
  });
});
