import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { exchange, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const SLOW_MS = 100;

let switchboard: RunningSwitchboard;

setUp(async (use) => {
  switchboard = use(await startSwitchboard({}, { slowClientMs: SLOW_MS }));
});

function open({ baseUrl }: RunningSwitchboard): Socket {
  const { port, hostname } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  return socket;
}

function headOf(path: string, length: string): string {
  const { host } = new URL(switchboard.baseUrl);
  return `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`;
}

/** Bytes sent after the response reset the connection and may lose it, so this tries again. */
async function trickle(first: string, next: string): Promise<string> {
  for (;;) {
    const answer = await trickleOnce(first, next);
    if (answer !== 'closed') return answer;
  }
}

async function trickleOnce(first: string, next: string): Promise<string> {
  const socket = open(switchboard);
  const answer = text(socket).catch(() => 'closed');
  socket.write(first);
  const timer = setInterval(() => socket.write(next), SLOW_MS / 4);
  try {
    return await answer;
  } finally {
    clearInterval(timer);
  }
}

describe('a deliberately slow client', () => {
  it('is disconnected in the head of a request, even if it sends nothing', async () => {
    expect(await trickle('POST /mcp HTTP/1.1\r\nhost: x\r\n', 'x: y\r\n')).toMatch(/^HTTP\/1.1 408 /);
    expect(await trickle('', '')).toMatch(/^HTTP\/1.1 408 /);
  });

  it.each([
    ['/mcp', 'content-length: 1000000', ' '],
    ['/mcp', 'transfer-encoding: chunked', '1\r\n \r\n'],
    ['/api/v1/projects', 'content-length: 1000000', ' '],
    ['/nothing', 'content-length: 1000000', ' '],
  ])('is disconnected in the body of a request for %s with %s', async (path, length, next) => {
    const answer = await trickle(headOf(path, length), next);
    // A busy machine may time out before it returns 404.
    expect(answer).toMatch(path === '/nothing' ? /^HTTP\/1.1 40[48] / : /^HTTP\/1.1 408 .*request_timeout/s);
    // The API has its own error format.
    expect(answer.includes('{"error":{"code":"request_timeout"')).toBe(path.startsWith('/api/'));
  });

  it('does not affect idle streams', async () => {
    const session = await RawSession.open(switchboard.url);
    const stream = await session.listen();
    let isOpen = true;
    void stream.ended.then(() => {
      isOpen = false;
    });
    for (let count = 0; count < 5; count++) await trickle(headOf('/mcp', 'content-length: 1000000'), ' ');
    expect(isOpen).toBe(true);
    await session.end();
    await stream.ended;
  });
});

it('connections over the limit are rejected with the reason, and new ones are accepted when others end', async () => {
  await using small = await startSwitchboard({}, { maxConnections: 2 });
  const health = () => exchange(`${small.baseUrl}/healthz`, { method: 'GET' });
  const [first, second] = [open(small), open(small)];
  for (const socket of [first, second]) {
    socket.write(`GET /healthz HTTP/1.1\r\nhost: ${new URL(small.baseUrl).host}\r\n\r\n`);
    await once(socket, 'data');
  }
  expect(await health()).toMatchObject({
    status: 503,
    json: {
      error: { message: expect.stringContaining('maxConnections'), data: { code: 'too_many_connections' } },
    },
  });
  first.destroy();
  for (let status = 503; status !== 200; ) ({ status } = await health());
  second.destroy();
});
