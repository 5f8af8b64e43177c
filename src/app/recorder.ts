import { randomUUID } from 'node:crypto';
import { asSwitchboardError } from '../errors.ts';
import type { CallRecorder, FinishedCall } from '../gateway/records.ts';
import { bytesAt, type Message } from '../protocol/envelope.ts';
import type { Span } from '../protocol/json-scanner.ts';
import { byteLength, type Chunks, join, type RpcError } from '../protocol/jsonrpc.ts';
import type { CallRecord } from '../store/types.ts';
import type { Project } from '../upstreams/replica.ts';

/** What has to be known of the rest of the program to write records. */
export interface RecorderSettings {
  write(records: readonly CallRecord[]): Promise<void>;
  deleteOld(): Promise<number>;
  keepsPayloads(projectId: string): boolean;
  redact(projectId: string, text: string): string;
  warned(message: string): void;
}

/** So many calls wait at most; while the database is away, later ones are dropped, and counted. */
const MAX_QUEUED = 10_000;
/** And so much of their arguments and results; what is more is left out of the records. */
const MAX_QUEUED_CHARACTERS = 64 * 1024 * 1024;
const BATCH = 2_000;
/** A batch ends here too: one statement with more in it would hold up everything else. */
const BATCH_CHARACTERS = 2 * 1024 * 1024;
/** Finding the records that the database does not take ends here: each that fails is a statement more. */
const MAX_FAILED_STATEMENTS = 40;
/** So many different reasons are told. */
const MAX_REASONS = 10;
const FLUSH_MS = 250;
const RETRY_MS = 1_000;
/** What is larger is not kept: records are for looking into, not for storing results. */
const MAX_PAYLOAD_BYTES = 256 * 1024;
const SWEEP_MS = 60 * 60 * 1_000;

/** Writes down what calls there were: many at a time, behind the back of the calls. */
export class Recorder implements CallRecorder {
  private readonly settings: RecorderSettings;
  private queue: Waiting[] = [];
  private queuedCharacters = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly sweeper: NodeJS.Timeout;
  private writing: Promise<void> | undefined;
  private isFailing = false;
  /** Why records were dropped since all of a batch were taken. */
  private readonly reasons = new Set<string>();
  private isClosed = false;
  dropped = 0;

  constructor(settings: RecorderSettings) {
    this.settings = settings;
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS);
    this.sweeper.unref();
    this.sweep();
  }

  get queued(): number {
    return this.queue.length;
  }

  keepsPayloads({ id }: Project): boolean {
    return this.settings.keepsPayloads(id);
  }

  record(call: FinishedCall): void {
    if (this.queue.length >= MAX_QUEUED) {
      this.dropped++;
      return;
    }
    const endedAt = Date.now();
    // With bytes in it, it is made now: they are parts of larger ones, which would be kept as long.
    const hasBytes = call.request !== undefined || call.answer !== undefined;
    this.queue.push(hasBytes ? { record: this.bounded(this.recordOf(call, endedAt)) } : { call, endedAt });
    if (this.timer === undefined && this.writing === undefined) this.schedule(FLUSH_MS);
  }

  /** Writes what is left, once. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.sweeper);
    clearTimeout(this.timer);
    await this.writing;
    while (this.queue.length > 0 && (await this.writeBatch())) {
      // Until nothing is left, or the database does not take it.
    }
    if (this.queue.length > 0) {
      this.settings.warned(`${this.queue.length} records of calls could not be written and are lost.`);
    }
  }

  private schedule(milliseconds: number): void {
    this.timer = setTimeout(() => this.flush(), milliseconds);
    this.timer.unref();
  }

  private flush(): void {
    this.timer = undefined;
    this.writing = this.writeBatch().then((isDone) => {
      this.writing = undefined;
      if (this.queue.length === 0 || this.isClosed) return;
      this.schedule(isDone ? (this.isBehind ? 0 : FLUSH_MS) : RETRY_MS);
    });
  }

  private get isBehind(): boolean {
    return this.queue.length >= BATCH || this.queuedCharacters >= BATCH_CHARACTERS;
  }

  /** False where the database is away; what was not written stays in the queue. */
  private async writeBatch(): Promise<boolean> {
    const records = this.nextBatch();
    const refusals: Refusals = { statements: 0, records: 0 };
    try {
      await this.write(records, refusals);
      for (const record of records) this.queuedCharacters -= charactersOf(record);
      this.queue.splice(0, records.length);
      this.dropped += refusals.records;
      if (refusals.records === 0) this.reasons.clear();
      this.isFailing = false;
      return true;
    } catch (error) {
      if (!this.isFailing)
        this.settings.warned(`Calls cannot be recorded just now: ${(error as Error).message}`);
      this.isFailing = true;
      return false;
    }
  }

  private nextBatch(): CallRecord[] {
    const records: CallRecord[] = [];
    let characters = 0;
    for (const waiting of this.queue.slice(0, BATCH)) {
      const record = this.complete(waiting);
      characters += charactersOf(record);
      if (characters > BATCH_CHARACTERS && records.length > 0) break;
      records.push(record);
    }
    return records;
  }

  /** Where the database takes the others but not one of them, that one is dropped. */
  private async write(records: readonly CallRecord[], refusals: Refusals): Promise<void> {
    if (refusals.statements >= MAX_FAILED_STATEMENTS) {
      refusals.records += records.length;
      return;
    }
    try {
      await this.settings.write(records);
    } catch (error) {
      if (asSwitchboardError(error).kind.retryable) throw error;
      refusals.statements++;
      if (records.length === 1) {
        refusals.records++;
        this.tellOnce((error as Error).message);
        return;
      }
      const half = Math.ceil(records.length / 2);
      await this.write(records.slice(0, half), refusals);
      await this.write(records.slice(half), refusals);
    }
  }

  private tellOnce(reason: string): void {
    if (this.reasons.has(reason) || this.reasons.size >= MAX_REASONS) return;
    this.reasons.add(reason);
    this.settings.warned(`Records of calls are dropped, because the database does not take them: ${reason}`);
  }

  /** The same record, with the same id, each time: what was written and not acknowledged is not there twice. */
  private complete(waiting: Waiting): CallRecord {
    waiting.record ??= this.recordOf(waiting.call!, waiting.endedAt!);
    return waiting.record;
  }

  private bounded(record: CallRecord): CallRecord {
    const characters = charactersOf(record);
    if (this.queuedCharacters + characters > MAX_QUEUED_CHARACTERS) {
      return { ...record, input: null, output: null };
    }
    this.queuedCharacters += characters;
    return record;
  }

  private recordOf(call: FinishedCall, endedAt: number): CallRecord {
    const { project, request, answer, isRpcError } = call;
    const clean = (text: string) => this.settings.redact(project.id, text);
    const keeps = request !== undefined;
    return {
      id: randomUUID(),
      projectId: project.id,
      client: call.client,
      method: call.method,
      server: call.server,
      replica: call.replica ?? null,
      tool: clean(call.own),
      status: statusOf(call),
      durationMs: Math.round(call.durationMs * 1_000) / 1_000,
      inputBytes: call.inputBytes,
      outputBytes: call.outputBytes,
      error: cleanError(errorOf(call), clean),
      input: keeps && request.params !== undefined ? inputOf(request, request.params, clean) : null,
      output: keeps && answer !== undefined && !isRpcError ? outputOf(answer, clean) : null,
      startedAt: new Date(endedAt - call.durationMs),
    };
  }

  private sweep(): void {
    this.settings.deleteOld().catch((error: Error) => {
      this.settings.warned(`Old records of calls cannot be deleted just now: ${error.message}`);
    });
  }
}

/** A call whose record is still to be made, or its record. */
interface Waiting {
  call?: FinishedCall;
  endedAt?: number;
  record?: CallRecord;
}

/** What the database did not take of a batch. */
interface Refusals {
  statements: number;
  records: number;
}

function statusOf({ outcome, error, isRpcError, isToolError }: FinishedCall): CallRecord['status'] {
  if (outcome === 'cancelled') return 'cancelled';
  if (outcome === 'failed') return error?.code === 'call_timeout' ? 'timeout' : 'error';
  if (isRpcError) return 'error';
  return isToolError ? 'tool_error' : 'ok';
}

function errorOf({ error, isRpcError, answer }: FinishedCall): CallRecord['error'] {
  if (error !== undefined) return { code: error.code, message: error.message };
  if (!isRpcError || answer === undefined) return null;
  if (byteLength(answer) > MAX_PAYLOAD_BYTES)
    return { code: 'server_error', message: 'The error is too large.' };
  try {
    const { error: said } = JSON.parse(join(answer).toString()) as { error?: RpcError };
    return { code: String(said?.code), message: String(said?.message) };
  } catch {
    return { code: 'server_error', message: 'The error is not valid JSON.' };
  }
}

function cleanError(error: CallRecord['error'], clean: (text: string) => string): CallRecord['error'] {
  return error && { code: error.code, message: clean(error.message) };
}

/** The arguments of a tool; of anything else all that was asked. */
function inputOf(request: Message, params: Span, clean: (text: string) => string): string | null {
  return payload([bytesAt(request.bytes, params)], clean, (asked) =>
    request.method === 'tools/call' ? asked.arguments : asked,
  );
}

function outputOf(answer: Chunks, clean: (text: string) => string): string | null {
  return payload(answer, clean, ({ result }) => result);
}

/** As JSON text. */
function payload(
  chunks: Chunks,
  clean: (text: string) => string,
  part: (value: Record<string, unknown>) => unknown,
): string {
  const bytes = byteLength(chunks);
  if (bytes > MAX_PAYLOAD_BYTES) return JSON.stringify({ omitted: `${bytes} bytes are too many to be kept` });
  try {
    const value = JSON.parse(join(chunks).toString()) as Record<string, unknown>;
    return JSON.stringify(cleanValue(part(value) ?? null, clean));
  } catch {
    return JSON.stringify({ omitted: 'it is not valid JSON' });
  }
}

/** Of strings and keys only: numbers that look like a secret are none, and without them it would not be JSON. */
function cleanValue(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === 'string') return clean(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, clean));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [clean(key), cleanValue(item, clean)]),
  );
}

function charactersOf({ input, output }: CallRecord): number {
  return (input?.length ?? 0) + (output?.length ?? 0);
}
