import type { Selectable } from 'kysely';
import type { DB } from './schema.ts';

export type CallRow = Selectable<DB['agent_run_tool_calls']>;

export interface CallRecord {
  /** A uuid; a record that is written twice is kept once. */
  id: string;
  projectId: string;
  runId?: string | undefined;
  messageId?: string | undefined;
  step?: number | undefined;
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

/** What many calls have in common. */
export type CallKind = Pick<CallRecord, 'projectId' | 'client' | 'method' | 'server' | 'replica' | 'tool'>;

/** How a call can end of which there is nothing more to tell. */
export const plainStatuses = ['ok', 'tool_error', 'cancelled'] as const satisfies CallRow['status'][];

/** Many calls of which there is nothing more to tell, as nearly all are: columns of numbers. */
export interface PlainCalls {
  /** The id of a call is this and its number, in three hexadecimal digits. */
  idPrefix: string;
  kinds: readonly CallKind[];
  columns: {
    /** Which of the kinds. */
    kind: Float64Array;
    /** Which of the plain statuses. */
    status: Float64Array;
    durationMs: Float64Array;
    inputBytes: Float64Array;
    outputBytes: Float64Array;
    /** In milliseconds. */
    startedAt: Float64Array;
  };
}
