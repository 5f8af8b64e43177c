import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { patienceMs } from '../helpers/patience.ts';
import { HostingSite } from './hosting-site.ts';

/** A Switchboard with a hosted server, a call of which is under way. */
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

describe.concurrent('a call of a hosted server that is under way at SIGTERM', () => {
  it('may end, and only then its server is stopped', async () => {
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

  it('is refused when the time is over, and not cut', async () => {
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

it.concurrent('a hosted server that takes long to stop is named', async () => {
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
  // Nobody has to see the rest of the 30 s.
  const exited = once(program, 'exit');
  program.kill('SIGTERM');
  await exited;
});
