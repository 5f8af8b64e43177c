import type { AgentRunCall } from '../api/run-input.ts';
import { withoutFiles } from '../records/call-record.ts';
import type { CallRecord } from '../store/call-record.ts';
import { keptValue } from './stored-messages.ts';

/** A call that an agent made without us, as it is written down: like those that went through us. */
export function agentCallRecord(
  call: AgentRunCall,
  run: Pick<CallRecord, 'projectId' | 'runId' | 'client'>,
  keepsPayloads: boolean,
  redact: (text: string) => string,
): CallRecord {
  const { id, step, tool, server, status, input, output, error = null, duration_ms: durationMs } = call;
  return {
    ...{ ...run, id, step, server, status, durationMs, method: 'tools/call', replica: null },
    tool: redact(tool),
    inputBytes: bytesOf(input),
    outputBytes: output === undefined ? 0 : bytesOf(output),
    error: error && { code: error.code, message: redact(error.message) },
    input: keepsPayloads ? keptValue(input, redact) : null,
    output: keepsPayloads && output !== undefined ? keptValue(withoutFiles(output), redact) : null,
    startedAt: new Date(Date.now() - durationMs),
  };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
