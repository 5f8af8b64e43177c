import { expect, it } from 'vitest';
import type { CallView } from '../../api/views.ts';
import { localTime, table } from '../output.ts';
import { callRow } from './actions.ts';

const created_at = '2030-01-01T12:00:00.000Z';

function callView(otherwise: Partial<CallView> = {}): CallView {
  return {
    id: '1',
    ...{ run_id: null, message_id: null, step: null, input: null, output: null },
    principal: { id: 'local', name: 'local user' },
    client: 'cursor 1.0',
    method: 'tools/call',
    server: 'github',
    replica: null,
    tool: 'search',
    status: 'ok',
    duration_ms: 12.4,
    input_bytes: 120,
    output_bytes: 4_512,
    error: null,
    created_at,
    ...otherwise,
  };
}

it('shows a call as a row of time, status, server, tool, duration, sizes, principal, client and error', () => {
  expect(callRow(callView())).toEqual([
    localTime(created_at),
    ...['ok', 'github', 'search', '12 ms', '120 B → 4.5 kB', 'local user', 'cursor 1.0', ''],
  ]);
  const error = { code: 'call_timeout', message: 'It took\u001b[2J\ntoo long.' };
  const failed = {
    status: 'tool_error' as const,
    replica: 2,
    tool: null,
    method: 'resources/read',
    client: null,
    principal: null,
  };
  expect(callRow(callView({ ...failed, output_bytes: 2_000_000, error }))).toEqual([
    localTime(created_at),
    ...['tool error', 'github/2', 'resources/read', '12 ms', '120 B → 2.0 MB', '', ''],
    'call_timeout: It took\\u001b[2J too long.',
  ]);
});

it('aligns tables that share their widths', () => {
  const widths: number[] = [];
  expect(table([['long name', 'x']], widths)).toBe('long name  x');
  expect(table([['short', 'y']], widths)).toBe('short      y');
});

it('shows times in the local time zone', () => {
  expect(localTime(new Date(2030, 0, 2, 3, 4, 5).toISOString())).toBe('2030-01-02 03:04:05');
});
