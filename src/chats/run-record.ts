import { randomUUID } from 'node:crypto';
import type { ToolCallRecord } from '../agent/events.ts';
import type { AgentMessage } from '../agent/model.ts';
import { asSwitchboardError } from '../errors.ts';
import type { FinishedCall } from '../gateway/records.ts';
import { recordOf } from '../records/call-record.ts';
import type { CallRecord } from '../store/call-record.ts';
import type { NewRun, RunEnd } from '../store/runs.ts';
import type { Store } from '../store/store.ts';
import { keptContent, keptValue } from './stored-messages.ts';

export interface RunRecordSettings {
  store: Pick<Store, 'runs' | 'calls'>;
  projectId: string;
  redact(text: string): string;
  warned(message: string): void;
}

/** What is written down of one run, in the order in which it happens, behind its back, and all of it before its end. */
export class RunRecord {
  readonly id = randomUUID();
  private readonly settings: RunRecordSettings;
  private readonly waiting: (() => Promise<void>)[] = [];
  private writing: Promise<void> | undefined;
  private position = 0;
  /** The last turn of the model: the tool calls that come now were made in it. */
  private turn: { messageId: string; step: number } | undefined;

  constructor(settings: RunRecordSettings) {
    this.settings = settings;
  }

  /** Settles when the run is there. */
  async begin(
    run: Pick<NewRun, 'model' | 'system' | 'tools'>,
    messages: readonly AgentMessage[],
  ): Promise<void> {
    const { store, projectId, redact } = this.settings;
    const { id } = this;
    const system = run.system === null ? null : redact(run.system);
    await store.runs.create({
      ...run,
      id,
      projectId,
      agent: null,
      system,
      input: this.textOf(messages.at(-1)),
    });
    for (const message of messages) this.message(message, 0);
  }

  message(message: AgentMessage, step: number): void {
    const { store, redact } = this.settings;
    const { role } = message;
    const row = { id: randomUUID(), position: this.position++, role, content: keptContent(message, redact) };
    if (role === 'assistant') this.turn = { messageId: row.id, step };
    this.write(() => store.runs.addMessages(this.id, [row]));
  }

  call(call: FinishedCall): void {
    this.add(recordOf(call, Date.now(), (_id, text) => this.settings.redact(text)));
  }

  /** No server was asked. */
  unknownTool({ name, input, durationMs }: ToolCallRecord): void {
    const text = keptValue(input, this.settings.redact);
    this.add({
      ...{ id: randomUUID(), projectId: this.settings.projectId, client: 'chat', method: 'tools/call' },
      ...{ server: null, replica: null, tool: this.settings.redact(name), status: 'error', durationMs },
      ...{ inputBytes: Buffer.byteLength(JSON.stringify(input)), outputBytes: 0, input: text, output: null },
      error: { code: 'unknown_tool', message: this.settings.redact(`Unknown tool: ${name}`) },
      startedAt: new Date(),
    });
  }

  /** Settles when all of it is there; fails where the database does not take it. */
  async end({ output, error, ...end }: RunEnd): Promise<void> {
    const { store, redact } = this.settings;
    const said = typeof output === 'string' ? redact(output) : output;
    const why = error && { code: error.code, message: redact(error.message) };
    this.write(() => store.runs.finish(this.id, { ...end, output: said, error: why }));
    await this.writing;
    // What was not taken before is tried once more.
    await this.writeAll();
  }

  private add(record: CallRecord): void {
    const inRun = { ...record, runId: this.id, ...this.turn };
    this.write(() => this.settings.store.calls.record([inRun]));
  }

  private write(write: () => Promise<void>): void {
    this.waiting.push(write);
    this.writing ??= this.writeAll()
      .catch(() => {})
      .finally(() => {
        this.writing = undefined;
      });
  }

  /** Each can be written twice and is there once. */
  private async writeAll(): Promise<void> {
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      try {
        await next();
      } catch (error) {
        const { kind, message } = asSwitchboardError(error);
        if (kind.retryable) throw error;
        this.settings.warned(`A part of the run ${this.id} cannot be kept: ${message}`);
      }
      this.waiting.shift();
    }
  }

  private textOf(message: AgentMessage | undefined): string {
    const texts = message?.content.map((part) => (part.type === 'text' ? part.text : '')) ?? [];
    return this.settings.redact(texts.join(''));
  }
}
