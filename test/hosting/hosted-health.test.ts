import { describe, expect, it } from 'vitest';
import type { HostedView } from '../../src/api/hosted-views.ts';
import { freePort } from '../helpers/free-port.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { isReady, sharedHostingSite, sharedProcessSite } from './hosting-site.ts';

describe('the status of a server in a sandbox', () => {
  const open = sharedHostingSite();

  it('[H13] has state, uptime, restarts, last crash, CPU and memory', async ({ skip }) => {
    const site = await open({ skip });
    const { id } = await site.host({ image: await site.image('logs-lifecycle'), volumes: ['/data'] });
    const first = await site.view(id);
    expect(first).toMatchObject({
      ...{ status: 'ready', container_status: 'running', restart_count: 0, last_crash: null },
      uptime_seconds: expect.any(Number),
      usage: { memory_bytes: expect.any(Number), memory_limit_bytes: 512 * 2 ** 20 },
    });
    expect(first.usage!.memory_bytes).toBeGreaterThan(2 ** 20);
    expect(first.usage!.memory_bytes).toBeLessThan(512 * 2 ** 20);
    await site.tool(id, 'echo', { text: 'some work' });
    const second = await site.view(id);
    expect(second.uptime_seconds).toBeGreaterThanOrEqual(first.uptime_seconds!);
    expect(second.usage!.cpu_percent).toBeGreaterThan(0);
    expect(second.tool_count).toBe(6);

    await site.call(id, 'tools/call', { name: 'crash' });
    await site.reaches(id, ({ restart_count, status }) => restart_count === 1 && status === 'ready');
    const third = await site.view(id);
    expect(third).toMatchObject({
      restart_count: 1,
      last_crash: { at: expect.any(String), exit_code: 70, reason: expect.any(String) },
      usage: { memory_bytes: expect.any(Number) },
    });
    expect(third.uptime_seconds).toBeLessThan((Date.now() - Date.parse(third.last_crash!.at)) / 1_000 + 1);

    await site.site.done(`POST /mcp/servers/${id}/stop`);
    await site.reaches(id, ({ status }) => status === 'stopped');
    expect(await site.view(id)).toMatchObject({
      ...{ container_status: 'stopped', uptime_seconds: null, usage: null, provider_workspace_id: null },
      restart_count: 1,
    });
    expect(await site.containers(id)).toEqual([]);
  });

  it('[H15] is unresponsive while its container is frozen, without a restart', async ({ skip }) => {
    const site = await openQuick({ skip });
    const before = await site.host({ name: 'frozen', image: await site.image('inspects-sandbox') });
    const { id } = before;
    await site.tool(id, 'arguments');
    const container = `/containers/${before.provider_workspace_id}`;
    await site.docker('POST', `${container}/pause`);
    const frozen = await site.reaches(id, ({ status }) => status === 'unresponsive');
    expect(frozen).toMatchObject(unresponsive(before));
    await site.docker('POST', `${container}/unpause`);
    expect(await site.reaches(id, isReady)).toMatchObject(recovered(before));
    expect(JSON.parse(await site.tool(id, 'arguments'))).toEqual([]);
  });
  const openQuick = sharedHostingSite({ heartbeatMs: 300, heartbeatTimeoutMs: 1_000 });
});

describe.concurrent('the heartbeat', () => {
  const open = sharedProcessSite({ heartbeatMs: 100, heartbeatTimeoutMs: 500 });

  it('[H15] marks a silent server, warns, does not restart it, and notices its recovery', async () => {
    const site = await open();
    const { witness } = site.site;
    // A server that is busy and silent all the while.
    const busy = await site.host(site.process('toolbox', witness.env('busy')));
    const long = site.tool(busy.id, 'wait');
    await witness.sees('busy', 'waiting');

    const before = await site.host({ name: 'silent', ...site.process('toolbox', witness.env('silent')) });
    const { id } = before;
    const pid = Number(await site.tool(id, 'pid'));
    await witness.sees('silent', 'ping');
    process.kill(pid, 'SIGSTOP');
    const silent = await site.reaches(id, ({ status }) => status === 'unresponsive');
    expect(silent).toMatchObject(unresponsive(before));
    expect(await site.rowReaches(id, ({ status }) => status === 'unresponsive')).toBeDefined();
    expect(await site.site.warning(/"silent" does not respond/)).toContain('not restarted');
    expect(await site.log(id)).toContain('does not respond');
    expect(await site.view(busy.id)).toMatchObject({ status: 'ready', health: 'ok' });

    process.kill(pid, 'SIGCONT');
    expect(await site.reaches(id, isReady)).toMatchObject(recovered(before));
    expect(Number(await site.tool(id, 'pid'))).toBe(pid);
    expect(await site.log(id)).toContain('responds again');
    witness.tell('busy', 'go');
    expect(await long).toBe('waited');
  });
});

describe('a server over HTTP', () => {
  const open = sharedProcessSite({ heartbeatMs: 100, heartbeatTimeoutMs: 500 });

  it('[H2] is ready when its endpoint speaks MCP, and again after a crash', async () => {
    const site = await open();
    const answering = await site.register({
      ...site.process('serves-http'),
      ...{ stdio_bridge: false, port: await freePort() },
    });
    const deaf = await site.register({
      ...{ provider: 'process', command: process.execPath, stdio_bridge: false, port: await freePort() },
      args: [
        '-e',
        'http.createServer((_, response) => response.writeHead(500).end()).listen(process.env.PORT)',
      ],
    });
    const mute = await site.reaches(deaf.id, ({ status }) => status === 'unresponsive');
    expect(mute.error).toMatch(/has not completed the MCP handshake within 0.6 s/);
    const { provider_workspace_id } = await site.reaches(answering.id, isReady);
    expect(await site.tool(answering.id, 'echo', { text: 'hello' })).toBe('hello');
    process.kill(Number(provider_workspace_id), 'SIGKILL');
    await site.reaches(
      answering.id,
      ({ status, restart_count }) => status === 'ready' && restart_count === 1,
    );
    expect(await site.tool(answering.id, 'echo', { text: 'again' })).toBe('again');
  });
});

describe.concurrent('the log', () => {
  const open = sharedProcessSite();

  it('is streamed live across restarts until the server is removed', async () => {
    const site = await open();
    const { command, args } = fixtureServer('crashes-in-call');
    const { id } = await site.host({
      provider: 'process',
      command: 'sh',
      args: ['-c', 'echo "begins with $TOKEN" >&2; exec "$0" "$@"', command, ...args],
      environment: { TOKEN: 'secret-of-the-server' },
    });
    const stream = await site.followLog(id);
    const line = (fits: RegExp) =>
      stream.events.first(({ event, data = '' }) => event === 'line' && fits.test(data));
    await line(/running \(process/);
    await line(/begins with \*\*\*"/);
    await site.call(id, 'tools/call', { name: 'crash' });
    await line(/FATAL: out of luck/);
    await line(/exited with code 70/);
    await site.reaches(id, ({ restart_count }) => restart_count === 1);
    expect(await site.remove(id)).toMatchObject({ status: 204 });
    await stream.ended;
    expect(JSON.stringify(stream.events.items)).not.toContain('secret-of-the-server');
  });
});

function unresponsive({ provider_workspace_id }: HostedView): object {
  return {
    ...{ provider_workspace_id, container_status: 'running', health: 'warning', restart_count: 0 },
    last_crash: null,
    error: expect.stringContaining('does not answer the heartbeat'),
  };
}

function recovered({ provider_workspace_id }: HostedView): object {
  return { provider_workspace_id, health: 'ok', restart_count: 0, last_crash: null, error: null };
}
