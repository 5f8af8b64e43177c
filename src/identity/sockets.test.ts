import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { readOwners, socketsIn, tablesOf } from './sockets.ts';

describe('socket tables', () => {
  it('are chosen by the address family and platform', () => {
    expect(tablesOf('127.0.0.1', 'linux').slice(0, 2)).toEqual(['/proc/net/tcp', '/proc/net/tcp6']);
    expect(tablesOf('::ffff:127.0.0.1', 'linux')[0]).toBe('/proc/net/tcp');
    expect(new Set(tablesOf('::1', 'linux'))).toEqual(new Set(['/proc/net/tcp6']));
    expect(new Set(tablesOf('::1', 'darwin'))).toEqual(new Set(['lsof']));
  });

  it('are parsed from lsof output', () => {
    const lines = [
      ...['p812', 'u501', 'f12', 'n127.0.0.1:51000->127.0.0.1:7400', 'f13', 'n[::1]:51001->[::1]:7400'],
      ...['p900', 'u0', 'f7', 'n127.0.0.1:7400->127.0.0.1:51000', 'f8', 'n*:7400', ''],
    ];
    expect([...socketsIn(lines.join('\n'))]).toEqual([
      ['127.0.0.1:51000->127.0.0.1:7400', 501],
      ['[::1]:51001->[::1]:7400', 501],
      ['127.0.0.1:7400->127.0.0.1:51000', 0],
      ['*:7400', 0],
    ]);
  });

  it.skipIf(process.platform !== 'linux')(
    'are read in few event loop turns, and only until every match is found',
    async () => {
      await using stack = new AsyncDisposableStack();
      const server = stack.adopt(createServer().listen(0, '127.0.0.1'), (opened) => void opened.close());
      await once(server, 'listening');
      const ours = { address: '127.0.0.1', port: (server.address() as AddressInfo).port };
      const ports: number[] = [];
      for (let count = 0; count < 400; count++) {
        const socket = stack.adopt(connect(ours.port, '127.0.0.1'), (opened) => void opened.destroy());
        await once(socket, 'connect');
        ports.push(socket.localPort!);
      }
      const endsOf = (port: number) => ({ theirs: { address: '127.0.0.1', port }, ours });
      const unknown = await countReads(() => readOwners('/proc/net/tcp', ours.port, [endsOf(1)]));
      expect(unknown.reads).toBeGreaterThan(24);
      // Sequential reads would take one turn each.
      expect(unknown.turns).toBeLessThan(0.6 * unknown.reads);
      // At least one of these ports is likely in the first half of the table.
      let fewest = unknown.reads;
      for (const port of ports.slice(0, 20)) {
        const { result, reads } = await countReads(() =>
          readOwners('/proc/net/tcp', ours.port, [endsOf(port)]),
        );
        // Rows move during the read, so one may be missed.
        expect([process.geteuid!(), undefined]).toContain(result(endsOf(port)));
        fewest = Math.min(fewest, reads);
      }
      expect(fewest).toBeLessThan(unknown.reads);
    },
  );
});

/** Counts file system reads, and how often the caller waited for them. */
async function countReads<Result>(work: () => Promise<Result>) {
  const underWay = new Set<number>();
  let reads = 0;
  let turns = 0;
  const hook = createHook({
    init(id, type) {
      if (type !== 'FSREQPROMISE') return;
      reads++;
      if (underWay.size === 0) turns++;
      underWay.add(id);
    },
    before: (id) => void underWay.delete(id),
  }).enable();
  const result = await work();
  hook.disable();
  return { result, reads, turns };
}
