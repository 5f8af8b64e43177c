import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { patienceMs } from '../helpers/patience.ts';
import { HostingSite } from './hosting-site.ts';

/** A Switchboard with a call in flight at a hosted server. */
async function callUnderWay(shutdownGraceMs: number | undefined) {
  const site = await HostingSite.start({ others: { shutdownGraceMs } });
  const { witness, switchboard } = site.site;
  const { id } = await site.host({ name: 'box', ...site.process('toolbox', witness.env('box')) });
  const call = site.call(id, 'tools/call', { name: 'wait', arguments: {} });
  await witness.sees('box', 'waiting');
  const exited = once(switchboard.process, 'exit');
  switchboard.process.kill('SIGTERM');
  return { site, witness, switchboard, call, exited };
}

describe.concurrent('a call in flight at a hosted server on SIGTERM', () => {
  it('finishes before its server is stopped', async () => {
    const { site, witness, switchboard, call, exited } = await callUnderWay(patienceMs);
    await using _ = site;
    expect(await switchboard.event(({ event }) => event === 'waiting')).toMatchObject({
      calls: 1,
      servers: ['box'],
    });
    witness.tell('box', 'go');
    expect(await call).toMatchObject({ status: 200, body: { result: { content: [{ text: 'waited' }] } } });
    await exited;
    await witness.sees('box', 'end');
  });

  it('fails with an error when the grace period is over', async () => {
    const { site, call, exited } = await callUnderWay(100);
    await using _ = site;
    expect(await call).toMatchObject({
      status: 503,
      body: {
        error: {
          code: 'server_unavailable',
          message: 'Switchboard is stopping: try again when it is back.',
        },
      },
    });
    await exited;
  });
});

it.concurrent('a hosted server that is slow to stop is named', async () => {
  const site = await HostingSite.start();
  await using _ = site;
  const { witness, switchboard } = site.site;
  await site.host({ name: 'slow', ...site.process('ignores-sigterm', witness.env('slow')) });
  const { process: program } = switchboard;
  program.kill('SIGTERM');
  expect(await switchboard.event(({ event }) => event === 'waiting')).toEqual({
    event: 'waiting',
    calls: 0,
    servers: ['slow'],
    limit_ms: 30_000,
  });
  // No need to wait for the rest of the 30 s.
  const exited = once(program, 'exit');
  program.kill('SIGTERM');
  await exited;
});
