import { expect, it, onTestFinished, vi } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import type { FinishedCall } from '../gateway/records.ts';
import { readMessage } from '../protocol/envelope.ts';
import type { CallRecord } from '../store/types.ts';
import { Recorder } from './recorder.ts';

const project = { id: '11111111-1111-4111-8111-111111111111', name: 'default' };

function call(more: Partial<FinishedCall> = {}): FinishedCall {
  return {
    project,
    client: 'test 1',
    method: 'tools/call',
    server: 'box',
    replica: 1,
    own: 'echo',
    outcome: 'answered',
    isRpcError: false,
    isToolError: false,
    error: undefined,
    durationMs: 1.5,
    inputBytes: 10,
    outputBytes: 20,
    request: undefined,
    answer: undefined,
    ...more,
  };
}

/** A recorder in simulated time, and what was written through it. */
function recorder(write: (records: readonly CallRecord[]) => Promise<void> = async () => {}) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: CallRecord[][] = [];
  const warnings: string[] = [];
  const made = new Recorder({
    async write(records) {
      await write(records);
      written.push([...records]);
    },
    deleteOld: async () => 0,
    keepsPayloads: () => true,
    redact: (_project, text) => text.replaceAll('hunter2', '***'),
    warned: (message) => warnings.push(message),
  });
  return { made, written, warnings };
}

const away = () => new SwitchboardError('database_unavailable', 'The database is away.');

it('writes many calls at once, some time after they are over', async () => {
  const { made, written } = recorder();
  for (let index = 0; index < 3; index++) made.record(call());
  await vi.advanceTimersByTimeAsync(249);
  expect(written).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(written).toMatchObject([[{ server: 'box' }, { tool: 'echo' }, { status: 'ok', durationMs: 1.5 }]]);
  expect(made.queued).toBe(0);
});

it.each<[CallRecord['status'], Partial<FinishedCall>]>([
  ['ok', {}],
  ['tool_error', { isToolError: true }],
  ['cancelled', { outcome: 'cancelled' }],
  ['timeout', { outcome: 'failed', error: new SwitchboardError('call_timeout', 'too late') }],
  ['error', { outcome: 'failed', error: new SwitchboardError('server_unavailable', 'gone') }],
  [
    'error',
    { isRpcError: true, answer: [Buffer.from('{"error":{"code":-1,"message":"hunter2 is wrong"}}')] },
  ],
])('tells %s', async (status, more) => {
  const { made, written } = recorder();
  made.record(call(more));
  await made.close();
  expect(written[0]![0]!.status).toBe(status);
  expect(JSON.stringify(written)).not.toContain('hunter2');
});

it('keeps what was not written, under the same ids, and counts what does not fit', async () => {
  let isAway = true;
  const tried: string[] = [];
  const { made, written, warnings } = recorder(async (records) => {
    tried.push(records[0]!.id);
    if (isAway) throw away();
  });
  for (let index = 0; index < 10_005; index++) made.record(call());
  await vi.advanceTimersByTimeAsync(5_000);
  expect(made.queued).toBe(10_000);
  expect(made.dropped).toBe(5);
  expect(new Set(tried).size).toBe(1);
  expect(warnings).toHaveLength(1);
  isAway = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(written.flat()).toHaveLength(10_000);
  expect(new Set(written.flat().map(({ id }) => id)).size).toBe(10_000);
});

it('drops the one record that the database does not take, and no other', async () => {
  const { made, written } = recorder(async (records) => {
    if (records.some(({ client }) => client === 'poison')) throw new Error('cannot be stored');
  });
  for (let index = 0; index < 9; index++) made.record(call({ client: index === 4 ? 'poison' : 'test 1' }));
  await vi.advanceTimersByTimeAsync(250);
  expect(written.flat()).toHaveLength(8);
  expect([made.queued, made.dropped]).toEqual([0, 1]);
});

it('keeps arguments and results without secrets, and not those that are too large', async () => {
  const { made, written } = recorder();
  const request = readMessage(
    Buffer.from(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"key":"hunter2"}}}',
    ),
  );
  const answer = [Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')];
  const large = [Buffer.from(`{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(300_000)}"}`)];
  made.record(call({ request, answer }));
  made.record(call({ request, answer: large }));
  made.record(call({ request, answer: [Buffer.from('{"jsonrpc":')] }));
  await made.close();
  expect(written[0]!.map(({ input }) => input)).toEqual(Array(3).fill('{"key":"***"}'));
  expect(written[0]!.map(({ output }) => output)).toEqual([
    '{"content":[]}',
    expect.stringContaining('too many'),
    expect.stringContaining('not valid JSON'),
  ]);
});

it('holds no more of them than there is room for while the database is away', async () => {
  const { made, written } = recorder();
  const answer = [Buffer.from(`{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(250_000)}"}`)];
  for (let index = 0; index < 300; index++)
    made.record(call({ answer, request: undefined, isRpcError: false }));
  const request = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'));
  for (let index = 0; index < 300; index++) made.record(call({ answer, request }));
  await made.close();
  const characters = written.flat().reduce((sum, { output }) => sum + (output?.length ?? 0), 0);
  expect(written.flat()).toHaveLength(600);
  expect(characters).toBeLessThanOrEqual(64 * 1024 * 1024);
  expect(characters).toBeGreaterThan(60 * 1024 * 1024);
});
