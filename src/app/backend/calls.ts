import type { Backend } from '../../api/backend.ts';
import type { CallView } from '../../api/views.ts';
import type { CallRow } from '../../store/call-record.ts';
import { needStored, type Parts } from './context.ts';

export function callsBackend(parts: Parts): Backend['calls'] {
  return {
    async list(project, filter) {
      const { id } = parts.projects.get(project);
      const { store, recorder } = needStored(parts);
      const { calls, nextCursor } = await store.calls.list(id, filter);
      return { calls: calls.map(viewOf), next_cursor: nextCursor ?? null, dropped: recorder.dropped };
    },
  };
}

export function viewOf(row: CallRow): CallView {
  return {
    id: row.id,
    run_id: row.run_id,
    message_id: row.message_id,
    step: row.step,
    client: row.client || null,
    method: row.method,
    server: row.server_name,
    replica: row.replica,
    tool: row.tool_name,
    status: row.status,
    duration_ms: row.duration_ms,
    input_bytes: row.input_bytes,
    output_bytes: row.output_bytes,
    error: row.error === null ? null : { code: row.error_code ?? '', message: row.error },
    input: row.input,
    output: row.output,
    created_at: row.created_at.toISOString(),
  };
}
