import { describe, expect, it } from 'vitest';
import { isRunning } from '../helpers/processes.ts';
import { HostingSite } from './hosting-site.ts';

const names = Array.from({ length: 8 }, (_, index) => `server-${index + 1}`);

describe('[H8] many hosted servers', () => {
  it('start in parallel at boot, and end with Switchboard', async () => {
    await using hosting = await HostingSite.start();
    await registerAll(hosting);
    const first = await completeHandshakes(hosting, 1);

    await hosting.site.restart(async () => expect(first.filter(isRunning)).toEqual([]));
    const second = await completeHandshakes(hosting, 2);
    expect(new Set([...first, ...second]).size).toBe(2 * names.length);

    await hosting.site.switchboard.stop();
    expect(second.filter(isRunning)).toEqual([]);
  });

  it('run once each after Switchboard was killed', async () => {
    await using hosting = await HostingSite.start();
    await registerAll(hosting);
    const first = await completeHandshakes(hosting, 1);

    await hosting.killAndStart();
    await completeHandshakes(hosting, 2);
    expect(first.filter(isRunning)).toEqual([]);
  });
});

/** Servers that complete the handshake only on command. */
async function registerAll(hosting: HostingSite): Promise<void> {
  const { witness } = hosting.site;
  await Promise.all(
    names.map((name) =>
      hosting.register({ name, ...hosting.process('delays-handshake', witness.env(name)) }),
    ),
  );
}

/** Lets servers complete the handshake once all have received it, so a sequential start would hang. */
async function completeHandshakes(hosting: HostingSite, run: number): Promise<number[]> {
  const { witness } = hosting.site;
  const asked = await Promise.all(names.map((name) => witness.severalOf(name, 'initialize', run)));
  for (const name of names) witness.tell(name, 'answer');
  const servers = await hosting.list();
  expect(servers).toHaveLength(names.length);
  for (const { id } of servers) {
    expect(await hosting.tool(id, 'late_tool')).toBe('better late than never');
    const view = await hosting.reaches(id, ({ tool_count }) => tool_count === 1);
    expect(view).toMatchObject({ status: 'ready', restart_count: 0 });
  }
  const pids = asked.map((sightings) => sightings.at(-1)!.pid);
  expect(pids.filter(isRunning)).toHaveLength(names.length);
  return pids;
}
