import { randomBytes } from 'node:crypto';
import type { FinishedCall } from '../gateway/records.ts';
import { type CallKind, type CallRecord, type PlainCalls, plainStatuses } from '../store/call-record.ts';

/** Not more than the ids of one block can tell apart. */
export const BLOCK_CALLS = 2_000;

/**
 * Calls of which there is nothing more to tell than what kind they were, and a few numbers. It holds no object for each:
 * those would live until they are written, and to the collector of garbage what lives for a while is the most work.
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

  /** What is in it, with what must not be shown taken out of names. Nothing may be added from now on. */
  plain(clean: (projectId: string, name: string) => string): PlainCalls {
    // Kept for the next time too: what was written and not acknowledged is not there twice.
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

  private addKind({ project, client, method, server, replica, own }: FinishedCall): number {
    const number = this.kinds.length;
    const kind = { projectId: project.id, client, method, server, replica: replica ?? null, tool: own };
    this.kinds.push(kind);
    const sameTool = this.kindsByTool.get(own);
    if (sameTool === undefined) this.kindsByTool.set(own, [number]);
    else sameTool.push(number);
    return number;
  }
}

/** The same calls one by one. */
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
    call.client === kind.client &&
    call.method === kind.method &&
    call.project.id === kind.projectId
  );
}

/** A UUID of version 7 but for its last three digits: those of one time are together in an index. */
function timedIdPrefix(milliseconds: number): string {
  const time = milliseconds.toString(16).padStart(12, '0');
  const random = randomBytes(9).toString('hex');
  const variant = ((Number.parseInt(random[0]!, 16) & 3) | 8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(1, 4)}-${variant}${random.slice(4, 7)}-${random.slice(7, 16)}`;
}
