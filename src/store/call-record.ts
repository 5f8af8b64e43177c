import type { Selectable } from 'kysely';
import type { DB } from './schema.ts';

export type CallRow = Selectable<DB['agent_run_tool_calls']>;

export interface CallRecord {
  /** A uuid; writing a record twice stores it once. */
  id: string;
  projectId: string;
  runId?: string | undefined;
  messageId?: string | undefined;
  step?: number | undefined;
  /** Who made it; undefined if Switchboard did. */
  principal?: { readonly id: string; readonly name: string } | undefined;
  client: string;
  method: string;
  server: string | null;
  replica: number | null;
  tool: string | null;
  status: CallRow['status'];
  durationMs: number;
  inputBytes: number;
  outputBytes: number;
  error: { code: string; message: string } | null;
  /** JSON text. */
  input: string | null;
  /** JSON text. */
  output: string | null;
  startedAt: Date;
}

/** The fields that many calls share. */
export type CallKind = Pick<
  CallRecord,
  'projectId' | 'principal' | 'client' | 'method' | 'server' | 'replica' | 'tool'
>;

/** Calls with these statuses need no error, run or payload. */
export const plainStatuses = ['ok', 'tool_error', 'cancelled'] as const satisfies CallRow['status'][];

/** Calls without error, run and payload, as nearly all are, in columns of numbers. */
export interface PlainCalls {
  /** Followed by the call's number in three hexadecimal digits. */
  idPrefix: string;
  kinds: readonly CallKind[];
  columns: {
    /** An index into `kinds`. */
    kind: Float64Array;
    /** An index into `plainStatuses`. */
    status: Float64Array;
    durationMs: Float64Array;
    inputBytes: Float64Array;
    outputBytes: Float64Array;
    /** In milliseconds since the epoch. */
    startedAt: Float64Array;
  };
}
