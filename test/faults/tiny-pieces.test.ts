import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { HttpPeer, type PeerExchange } from '../helpers/http-peer.ts';
import { memoryOf } from '../helpers/processes.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';

const TEXT_BYTES = 512 * 1024;
/** Far more than three such messages need, and far less than one buffer per byte would take. */
const MAX_GROWTH = 200;

function chunked(text: string): string {
  return Array.from(text, (character) => `1\r\n${character}\r\n`).join('');
}

const manyBytes = chunked('x'.repeat(1024)).repeat(TEXT_BYTES / 1024);
const manyLines = chunked('data:\n'.repeat(1024)).repeat(TEXT_BYTES / 1024);

function answers(type: string, body: (open: string, close: string) => string) {
  return ({ message, response }: PeerExchange): boolean => {
    if (message?.method !== 'tools/call') return false;
    const open = `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[{"type":"text","text":"`;
    const socket = response.socket!;
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`);
    socket.write(`${body(open, '"}]}}')}0\r\n\r\n`);
    return true;
  };
}

async function postBytes(session: RawSession): Promise<string> {
  const { hostname, port, host, pathname } = new URL(session.url);
  const socket = connect(Number(port), hostname);
  const headers = Object.entries(session.headers()).map(([name, value]) => `${name}: ${value}\r\n`);
  const call =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sink__greet","arguments":{"a":"';
  socket.write(`POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\n${headers.join('')}`);
  socket.write(`transfer-encoding: chunked\r\n\r\n${chunked(call)}${manyBytes}${chunked('"}}}')}0\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString();
}

it.skipIf(process.platform !== 'linux')(
  'messages in pieces of one byte need little more memory than their size',
  async () => {
    await using peer = await HttpPeer.start({
      json: answers('application/json', (open, close) => chunked(open) + manyBytes + chunked(close)),
      events: answers(
        'text/event-stream',
        (open, close) =>
          chunked(`data: ${open}${close.slice(0, 2)}\n`) + manyLines + chunked(`data: ${close.slice(2)}\n\n`),
      ),
      sink: () => false,
    });
    await using switchboard = await startSwitchboard(peer.configuration(), { naming: 'always' });
    const session = await RawSession.open(switchboard.url);
    await session.call('sink__greet', {});
    const before = memoryOf(switchboard.process.pid!, 'VmHWM');
    const [json, events, sent] = await Promise.all([
      session.call('json__greet', {}),
      session.call('events__greet', {}),
      postBytes(session),
    ]);
    expect(json.result).toMatchObject({ content: [{ text: 'x'.repeat(TEXT_BYTES) }] });
    expect(events.result).toMatchObject({ content: [{ text: '' }] });
    expect(sent).toContain('hello');
    expect(memoryOf(switchboard.process.pid!, 'VmHWM') - before).toBeLessThan(MAX_GROWTH);
  },
);
