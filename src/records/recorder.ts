import { asSwitchboardError } from '../errors.ts';
import type { CallRecorder, FinishedCall } from '../gateway/records.ts';
import type { CallRecord, PlainCalls } from '../store/call-record.ts';
import type { Project } from '../upstreams/settings.ts';
import { CallBlock, recordsOf } from './call-block.ts';
import { isPlain, recordOf } from './call-record.ts';

export interface RecorderSettings {
  write(records: readonly CallRecord[]): Promise<void>;
  writePlain(calls: PlainCalls): Promise<void>;
  deleteOld(): Promise<number>;
  keepsPayloads(projectId: string): boolean;
  redact(projectId: string, text: string): string;
  warned(message: string): void;
}

/** While the database is unavailable, further calls are dropped and counted. */
const MAX_QUEUED = 10_000;
/** Payloads beyond this are left out of the records. */
const MAX_QUEUED_CHARACTERS = 64 * 1024 * 1024;
const BATCH = 2_000;
/** Also limits a batch, because a larger statement would delay all others. */
const BATCH_CHARACTERS = 2 * 1024 * 1024;
/** Limits the search for rejected records: each one that is found costs another statement. */
const MAX_FAILED_STATEMENTS = 40;
const MAX_REASONS = 10;
const FLUSH_MS = 250;
const RETRY_MS = 1_000;
const SWEEP_MS = 60 * 60 * 1_000;

/** Records calls in the background, in batches. */
export class Recorder implements CallRecorder {
  private readonly settings: RecorderSettings;
  /** Only the open block accepts calls. */
  private readonly blocks: CallBlock[] = [];
  private openBlock: CallBlock | undefined;
  private readonly spareBlocks: CallBlock[] = [];
  private readonly others: CallRecord[] = [];
  private queuedCharacters = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly sweeper: NodeJS.Timeout;
  private writing: Promise<void> | undefined;
  private isFailing = false;
  /** Reported since the last batch without a rejected record. */
  private readonly reasons = new Set<string>();
  private isClosed = false;
  queued = 0;
  dropped = 0;

  constructor(settings: RecorderSettings) {
    this.settings = settings;
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS);
    this.sweeper.unref();
    this.sweep();
  }

  keepsPayloads({ id }: Project): boolean {
    return this.settings.keepsPayloads(id);
  }

  record(call: FinishedCall): void {
    if (this.queued >= MAX_QUEUED) {
      this.dropped++;
      return;
    }
    this.queued++;
    const endedAt = Date.now();
    if (isPlain(call)) this.addPlain(call, endedAt);
    // Converted now, because its bytes are slices that would keep larger buffers in memory.
    else this.others.push(this.bounded(recordOf(call, endedAt, this.settings.redact)));
    if (this.timer === undefined && this.writing === undefined) this.schedule(FLUSH_MS);
  }

  /** Writes the rest, without a retry. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.sweeper);
    clearTimeout(this.timer);
    await this.writing;
    while (this.queued > 0 && (await this.writeBatch())) {
      // Ends when the queue is empty or the database is unavailable.
    }
    if (this.queued > 0) {
      this.settings.warned(`${this.queued} records of calls could not be written and are lost.`);
    }
  }

  private addPlain(call: FinishedCall, endedAt: number): void {
    this.openBlock ??= this.spareBlocks.pop() ?? new CallBlock();
    this.openBlock.add(call, endedAt);
    if (this.openBlock.isFull) this.closeBlock();
  }

  private closeBlock(): void {
    if (this.openBlock !== undefined) this.blocks.push(this.openBlock);
    this.openBlock = undefined;
  }

  private schedule(milliseconds: number): void {
    this.timer = setTimeout(() => this.flush(), milliseconds);
    this.timer.unref();
  }

  private flush(): void {
    this.timer = undefined;
    this.writing = this.writeBatch().then((isDone) => {
      this.writing = undefined;
      if (this.queued === 0 || this.isClosed) return;
      this.schedule(isDone ? (this.isBehind ? 0 : FLUSH_MS) : RETRY_MS);
    });
  }

  private get isBehind(): boolean {
    return this.queued >= BATCH || this.queuedCharacters >= BATCH_CHARACTERS;
  }

  /** Returns false if the database is unavailable; unwritten calls stay queued. */
  private async writeBatch(): Promise<boolean> {
    const refusals: Refusals = { statements: 0, records: 0 };
    try {
      await this.writeBlock(refusals);
      await this.writeOthers(refusals);
      if (refusals.records === 0) this.reasons.clear();
      this.isFailing = false;
      return true;
    } catch (error) {
      if (!this.isFailing) this.settings.warned(`Cannot record calls: ${(error as Error).message}`);
      this.isFailing = true;
      return false;
    }
  }

  private async writeBlock(refusals: Refusals): Promise<void> {
    if (this.blocks.length === 0) this.closeBlock();
    const [block] = this.blocks;
    if (block === undefined) return;
    const calls = block.plain(this.settings.redact);
    try {
      await this.settings.writePlain(calls);
      this.written(block.count, 0);
    } catch (error) {
      if (asSwitchboardError(error).kind.retryable) throw error;
      refusals.statements++;
      // One by one if need be, to lose only the rejected records.
      await this.writeAll(recordsOf(calls), refusals);
    }
    this.blocks.shift();
    block.clear();
    this.spareBlocks.push(block);
  }

  private async writeOthers(refusals: Refusals): Promise<void> {
    const records = this.nextOthers();
    await this.writeAll(records, refusals);
    for (const record of records) this.queuedCharacters -= charactersOf(record);
    this.others.splice(0, records.length);
  }

  private async writeAll(records: readonly CallRecord[], refusals: Refusals): Promise<void> {
    const before = refusals.records;
    if (records.length > 0) await this.write(records, refusals);
    this.written(records.length, refusals.records - before);
  }

  private written(count: number, refused: number): void {
    this.queued -= count;
    this.dropped += refused;
  }

  private nextOthers(): CallRecord[] {
    const records: CallRecord[] = [];
    let characters = 0;
    for (const record of this.others.slice(0, BATCH)) {
      characters += charactersOf(record);
      if (characters > BATCH_CHARACTERS && records.length > 0) break;
      records.push(record);
    }
    return records;
  }

  /** Bisects a rejected batch, and drops only the records that the database rejects. */
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
        this.warnOnce((error as Error).message);
        return;
      }
      const half = Math.ceil(records.length / 2);
      await this.write(records.slice(0, half), refusals);
      await this.write(records.slice(half), refusals);
    }
  }

  private warnOnce(reason: string): void {
    if (this.reasons.has(reason) || this.reasons.size >= MAX_REASONS) return;
    this.reasons.add(reason);
    this.settings.warned(`Records of calls are dropped, because the database does not take them: ${reason}`);
  }

  private bounded(record: CallRecord): CallRecord {
    const characters = charactersOf(record);
    if (this.queuedCharacters + characters > MAX_QUEUED_CHARACTERS) {
      return { ...record, input: null, output: null };
    }
    this.queuedCharacters += characters;
    return record;
  }

  private sweep(): void {
    this.settings.deleteOld().catch((error: Error) => {
      this.settings.warned(`Cannot delete old call records: ${error.message}`);
    });
  }
}

interface Refusals {
  statements: number;
  records: number;
}

function charactersOf({ input, output }: CallRecord): number {
  return (input?.length ?? 0) + (output?.length ?? 0);
}
