import { expect, it } from 'vitest';
import { HttpPeer, openEvents, type PeerExchange, writeEvent } from '../helpers/http-peer.ts';
import { memoryOf } from '../helpers/processes.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';

const PINGS = 16;
const megabyte = Buffer.alloc(1024 * 1024, ' ');
const MEGABYTES = 32;
/** Half of what is sent, so that garbage collection does not decide the result. */
const MAX_GROWTH = (PINGS * MEGABYTES) / 2;

it.skipIf(process.platform !== 'linux').each(['application/json', 'text/event-stream'])(
  'unsolicited responses with %s are not kept in memory',
  async (type) => {
    const { promise: allSent, resolve: sentAll } = Promise.withResolvers<void>();
    const { promise: listening, resolve: listens } = Promise.withResolvers<PeerExchange['response']>();
    let sent = 0;
    await using peer = await HttpPeer.start({
      bulky({ method, message, response }) {
        if (method === 'GET') {
          openEvents(response);
          listens(response);
          return true;
        }
        if (message?.method !== undefined) return false;
        // The response to a ping is no request and needs no body, but this one never ends.
        response.writeHead(200, { 'content-type': type });
        response.write('data: ');
        for (let count = 1; count < MEGABYTES; count++) response.write(megabyte);
        response.write(megabyte, () => ++sent === PINGS && sentAll());
        return true;
      },
    });
    await using switchboard = await startSwitchboard(peer.configuration(), { startup: 'parallel' });
    const stream = await listening;
    await switchboard.event(({ event, state }) => event === 'server' && state === 'ready');
    const before = memoryOf(switchboard.process.pid!, 'VmHWM');
    for (let id = 1; id <= PINGS; id++) writeEvent(stream, {}, { id, method: 'ping' });
    await allSent;
    expect(memoryOf(switchboard.process.pid!, 'VmHWM') - before).toBeLessThan(MAX_GROWTH);
  },
);
