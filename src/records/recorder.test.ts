import { expect, it, onTestFinished, vi } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import type { FinishedCall } from '../gateway/records.ts';
import { readMessage } from '../protocol/message-reader.ts';
import type { CallRecord } from '../store/call-record.ts';
import { recordsOf } from './call-block.ts';
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

/** A recorder in simulated time, and its writes. */
function recorder(write: (records: readonly CallRecord[]) => Promise<void> = async () => {}) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: CallRecord[][] = [];
  const warnings: string[] = [];
  const note = async (records: readonly CallRecord[]) => {
    await write(records);
    written.push([...records]);
  };
  const made = new Recorder({
    write: note,
    writePlain: (calls) => note(recordsOf(calls)),
    deleteOld: async () => 0,
    keepsPayloads: () => true,
    redact: (_project, text) => text.replaceAll(/hunter2|12345|true/g, '***'),
    warned: (message) => warnings.push(message),
  });
  return { made, written, warnings };
}

const away = () => new SwitchboardError('database_unavailable', 'The database is away.');

it('writes many calls in one batch, some time after they end', async () => {
  const { made, written } = recorder();
  for (let index = 0; index < 3; index++) made.record(call());
  await vi.advanceTimersByTimeAsync(249);
  expect(written).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(written).toMatchObject([[{ server: 'box' }, { tool: 'echo' }, { status: 'ok', durationMs: 1.5 }]]);
  expect(made.queued).toBe(0);
});

it('writes who made a call, whatever the record of it looks like', async () => {
  const { made, written } = recorder();
  const principal = { id: 'a key', name: 'ci' };
  made.record(call({ principal }));
  made.record(call({ principal, outcome: 'failed', error: away() }));
  made.record(call());
  await made.close();
  expect(written.flat().map((record) => record.principal)).toEqual([principal, undefined, principal]);
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
])('records the status %s', async (status, more) => {
  const { made, written } = recorder();
  made.record(call(more));
  await made.close();
  expect(written[0]![0]!.status).toBe(status);
  expect(JSON.stringify(written)).not.toContain('hunter2');
});

it('keeps unwritten records under the same ids, and counts those that do not fit', async () => {
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

it('drops only the record that the database rejects', async () => {
  const { made, written } = recorder(async (records) => {
    if (records.some(({ client }) => client === 'poison')) throw new Error('cannot be stored');
  });
  for (let index = 0; index < 9; index++) made.record(call({ client: index === 4 ? 'poison' : 'test 1' }));
  await vi.advanceTimersByTimeAsync(250);
  expect(written.flat()).toHaveLength(8);
  expect([made.queued, made.dropped]).toEqual([0, 1]);
});

it('reports once why records are dropped, and again after a successful batch', async () => {
  let reason: string | undefined = 'check "nope" is violated';
  const { made, warnings } = recorder(async () => {
    if (reason !== undefined) throw new Error(reason);
  });
  const flushed = async () => {
    for (let index = 0; index < 5; index++) made.record(call());
    await vi.advanceTimersByTimeAsync(250);
  };
  await flushed();
  await flushed();
  expect(warnings).toEqual([expect.stringContaining('check "nope" is violated')]);
  reason = 'column "gone" does not exist';
  await flushed();
  expect(warnings).toHaveLength(2);
  reason = undefined;
  await flushed();
  reason = 'check "nope" is violated';
  await flushed();
  expect(warnings).toHaveLength(3);
  expect(made.dropped).toBe(20);
});

it('gives up a batch with too many rejected records, and counts all of it', async () => {
  let statements = 0;
  const { made, written } = recorder(async () => {
    statements++;
    throw new Error('cannot be stored');
  });
  for (let index = 0; index < 2_000; index++) made.record(call());
  await vi.advanceTimersByTimeAsync(250);
  expect(statements).toBe(40);
  expect([written.length, made.queued, made.dropped]).toEqual([0, 0, 2_000]);
});

it('counts a rejected record once, even if the database fails in the middle of its batch', async () => {
  let isAway = true;
  const { made } = recorder(async (records) => {
    if (records.some(({ client }) => client === 'poison')) throw new Error('cannot be stored');
    if (isAway) throw away();
  });
  for (const client of ['poison', 'test 1']) made.record(call({ client }));
  await vi.advanceTimersByTimeAsync(3_000);
  expect([made.queued, made.dropped]).toEqual([2, 0]);
  isAway = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect([made.queued, made.dropped]).toEqual([0, 1]);
});

it('writes large records in small batches, one right after the other', async () => {
  const { made, written } = recorder();
  const request = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'));
  const answer = [Buffer.from(`{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(250_000)}"}`)];
  for (let index = 0; index < 40; index++) made.record(call({ answer, request }));
  await vi.advanceTimersByTimeAsync(510);
  expect(written.map(({ length }) => length)).toEqual([8, 8, 8, 8, 8]);
});

it('keeps numbers and literals that look like a secret, so that the result stays JSON', async () => {
  const { made, written } = recorder();
  const sent = '{"port":12345,"isOn":true,"key 12345":["12345 is true",null],"__proto__":"hunter2"}';
  const request = readMessage(
    Buffer.from(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${sent}}}`,
    ),
  );
  made.record(call({ request }));
  await made.close();
  expect(written[0]![0]!.input).toBe(
    '{"port":12345,"isOn":true,"key ***":["*** is ***",null],"__proto__":"***"}',
  );
});

it('keeps arguments and results without secrets, and drops those that are too large', async () => {
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

it('bounds the payloads in memory while the database is unavailable', async () => {
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
