import { randomBytes } from 'node:crypto';
import type { FinishedCall } from '../gateway/records.ts';
import { type CallKind, type CallRecord, type PlainCalls, plainStatuses } from '../store/call-record.ts';

/** Ids within a block have three hex digits. */
export const BLOCK_CALLS = 2_000;

/**
 * Calls that have only a kind and a few numbers, in columns: an object for each would live until it is written, and objects that
 * live that long cost the garbage collector the most.
 */
export class CallBlock {
  private readonly columns = {
    kind: new Float64Array(BLOCK_CALLS),
    status: new Float64Array(BLOCK_CALLS),
    durationMs: new Float64Array(BLOCK_CALLS),
    inputBytes: new Float64Array(BLOCK_CALLS),
    outputBytes: new Float64Array(BLOCK_CALLS),
    startedAt: new Float64Array(BLOCK_CALLS),
  };
  private kinds: CallKind[] = [];
  private readonly kindsByTool = new Map<string, number[]>();
  private lastKind = 0;
  private idPrefix = '';
  count = 0;

  get isFull(): boolean {
    return this.count === BLOCK_CALLS;
  }

  add(call: FinishedCall, endedAt: number): void {
    const { columns, count } = this;
    columns.kind[count] = this.kindOf(call);
    columns.status[count] = call.outcome === 'cancelled' ? 2 : call.isToolError ? 1 : 0;
    columns.durationMs[count] = Math.round(call.durationMs * 1_000) / 1_000;
    columns.inputBytes[count] = call.inputBytes;
    columns.outputBytes[count] = call.outputBytes;
    columns.startedAt[count] = Math.floor(endedAt - call.durationMs);
    this.count++;
  }

  /** Redacts names. Nothing may be added afterwards. */
  plain(clean: (projectId: string, name: string) => string): PlainCalls {
    // Kept for retries, so that calls of an unacknowledged write are not inserted twice.
    this.idPrefix ||= timedIdPrefix(Date.now());
    const { columns, count, idPrefix } = this;
    return {
      idPrefix,
      kinds: this.kinds.map((kind) => ({ ...kind, tool: kind.tool && clean(kind.projectId, kind.tool) })),
      columns: {
        kind: columns.kind.subarray(0, count),
        status: columns.status.subarray(0, count),
        durationMs: columns.durationMs.subarray(0, count),
        inputBytes: columns.inputBytes.subarray(0, count),
        outputBytes: columns.outputBytes.subarray(0, count),
        startedAt: columns.startedAt.subarray(0, count),
      },
    };
  }

  clear(): void {
    this.count = 0;
    this.idPrefix = '';
    this.kinds = [];
    this.kindsByTool.clear();
  }

  private kindOf(call: FinishedCall): number {
    const last = this.kinds[this.lastKind];
    if (last === undefined || !isOfKind(call, last))
      this.lastKind = this.findKind(call) ?? this.addKind(call);
    return this.lastKind;
  }

  private findKind(call: FinishedCall): number | undefined {
    return this.kindsByTool.get(call.own)?.find((number) => isOfKind(call, this.kinds[number]!));
  }

  private addKind({ project, principal, client, method, server, replica, own }: FinishedCall): number {
    const number = this.kinds.length;
    const names = { client, method, server, replica: replica ?? null, tool: own };
    this.kinds.push({ projectId: project.id, principal, ...names });
    const sameTool = this.kindsByTool.get(own);
    if (sameTool === undefined) this.kindsByTool.set(own, [number]);
    else sameTool.push(number);
    return number;
  }
}

export function recordsOf({ idPrefix, kinds, columns }: PlainCalls): CallRecord[] {
  return Array.from(columns.kind, (kind, index) => ({
    ...kinds[kind]!,
    id: idPrefix + (index + 1).toString(16).padStart(3, '0'),
    status: plainStatuses[columns.status[index]!]!,
    durationMs: columns.durationMs[index]!,
    inputBytes: columns.inputBytes[index]!,
    outputBytes: columns.outputBytes[index]!,
    startedAt: new Date(columns.startedAt[index]!),
    error: null,
    input: null,
    output: null,
  }));
}

function isOfKind(call: FinishedCall, kind: CallKind): boolean {
  return (
    call.own === kind.tool &&
    call.server === kind.server &&
    (call.replica ?? null) === kind.replica &&
    call.principal === kind.principal &&
    call.client === kind.client &&
    call.method === kind.method &&
    call.project.id === kind.projectId
  );
}

/** A version 7 UUID without its last three digits. Ids of the same time are adjacent in an index. */
function timedIdPrefix(milliseconds: number): string {
  const time = milliseconds.toString(16).padStart(12, '0');
  const random = randomBytes(9).toString('hex');
  const variant = ((Number.parseInt(random[0]!, 16) & 3) | 8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(1, 4)}-${variant}${random.slice(4, 7)}-${random.slice(7, 16)}`;
}
