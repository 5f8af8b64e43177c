import { randomUUID } from 'node:crypto';
import type { ToolCallRecord } from '../agent/events.ts';
import {
  type AgentMessage,
  type AssistantPart,
  type ResultContent,
  type TokenUsage,
  type UserPart,
  usageRow,
} from '../agent/model.ts';
import { asSwitchboardError } from '../errors.ts';
import type { FinishedCall } from '../gateway/records.ts';
import type { Principal } from '../identity/principal.ts';
import { cleanValue, recordOf } from '../records/call-record.ts';
import type { CallRecord } from '../store/call-record.ts';
import type { NewRun, RunEnd } from '../store/runs.ts';
import type { Store } from '../store/store.ts';

/** Longer texts are truncated: records are for inspection, not storage. */
const MAX_CHARACTERS = 256 * 1024;

type Clean = (text: string) => string;

interface RunRecordSettings {
  store: Pick<Store, 'runs' | 'calls'>;
  projectId: string;
  principal: Principal;
  redact(text: string): string;
  warned(message: string): void;
}

/** Persists one run in the background: in order, and completely before it is marked as ended. */
export class RunRecord {
  readonly id = randomUUID();
  private readonly settings: RunRecordSettings;
  private readonly queued: (() => Promise<void>)[] = [];
  private writing: Promise<void> | undefined;
  private position = 0;
  /** The last turn of the model, which made the following tool calls. */
  private turn: { messageId: string; step: number } | undefined;

  constructor(settings: RunRecordSettings) {
    this.settings = settings;
  }

  async begin(
    run: Pick<NewRun, 'model' | 'system' | 'tools'>,
    messages: readonly AgentMessage[],
  ): Promise<void> {
    const { store, projectId, principal, redact } = this.settings;
    const { id } = this;
    const system = run.system === null ? null : redact(run.system);
    await store.runs.create({
      ...run,
      id,
      projectId,
      principalId: runOwner(principal),
      agent: null,
      system,
      input: this.textOf(messages.at(-1)),
    });
    for (const message of messages) this.message(message, 0);
  }

  message(message: AgentMessage, step: number): void {
    const { store, redact } = this.settings;
    const { role } = message;
    const row = {
      id: randomUUID(),
      position: this.position++,
      role,
      content: persistedContent(message, redact),
    };
    if (role === 'assistant') this.turn = { messageId: row.id, step };
    this.write(() => store.runs.addMessages(this.id, [row]));
  }

  call(call: FinishedCall): void {
    this.add(recordOf(call, Date.now(), (_id, text) => this.settings.redact(text)));
  }

  /** A call that reached no server. */
  unknownTool({ name, input, durationMs }: ToolCallRecord): void {
    const { projectId, principal, redact } = this.settings;
    const text = persistedValue(input, redact);
    this.add({
      ...{ id: randomUUID(), projectId, principal, client: 'chat', method: 'tools/call' },
      ...{ server: null, replica: null, tool: redact(name), status: 'error', durationMs },
      ...{ inputBytes: Buffer.byteLength(JSON.stringify(input)), outputBytes: 0, input: text, output: null },
      error: { code: 'unknown_tool', message: redact(`Unknown tool: ${name}`) },
      startedAt: new Date(),
    });
  }

  /** Resolves when everything is persisted; rejects if the database does not accept it. */
  async end({ output, error, usage, ...end }: Omit<RunEnd, 'usage'> & { usage: TokenUsage }): Promise<void> {
    const { store, redact } = this.settings;
    const row: RunEnd = {
      ...end,
      output: typeof output === 'string' ? redact(output) : output,
      usage: usageRow(usage),
      error: error && { code: error.code, message: redact(error.message) },
    };
    this.write(() => store.runs.finish(this.id, row));
    await this.writing;
    // Writes that failed before are retried once.
    await this.writeAll();
  }

  private add(record: CallRecord): void {
    const inRun = { ...record, runId: this.id, ...this.turn };
    this.write(() => this.settings.store.calls.record([inRun]));
  }

  private write(write: () => Promise<void>): void {
    this.queued.push(write);
    this.writing ??= this.writeAll()
      .catch(() => {})
      .finally(() => {
        this.writing = undefined;
      });
  }

  /** All writes are idempotent, so that they can be retried. */
  private async writeAll(): Promise<void> {
    for (let next = this.queued[0]; next !== undefined; next = this.queued[0]) {
      try {
        await next();
      } catch (error) {
        const { kind, message } = asSwitchboardError(error);
        if (kind.retryable) throw error;
        this.settings.warned(`A part of the run ${this.id} could not be recorded: ${message}`);
      }
      this.queued.shift();
    }
  }

  private textOf(message: AgentMessage | undefined): string {
    const texts = message?.content.map((part) => (part.type === 'text' ? part.text : '')) ?? [];
    return this.settings.redact(texts.join(''));
  }
}

/** The id that runs are stored under. Those of the local user have none. */
export function runOwner({ kind, id }: Principal): string | null {
  return kind === 'local' ? null : id;
}

function persistedContent({ content }: AgentMessage, clean: Clean): object[] {
  return content.map((part: UserPart | AssistantPart) => persistedPart(part, clean));
}

function persistedPart(part: UserPart | AssistantPart, clean: Clean): object {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: cut(clean(part.text)) };
    case 'tool_call': {
      const { type, id, name, input } = part;
      return { type, id, name: clean(name), input: JSON.parse(persistedValue(input, clean)) as unknown };
    }
    case 'tool_result': {
      const { type, id, isError, content } = part;
      return { type, id, is_error: isError, content: content.map((item) => persistedResult(item, clean)) };
    }
  }
}

export function persistedValue(value: unknown, clean: Clean): string {
  const text = JSON.stringify(cleanValue(value, clean));
  if (text.length <= MAX_CHARACTERS) return text;
  return JSON.stringify({ omitted: `${text.length} characters are too many to be kept` });
}

function persistedResult(item: ResultContent, clean: Clean): object {
  if (item.type === 'text') return { type: 'text', text: cut(clean(item.text)) };
  const { type, mediaType, data } = item;
  return { type, media_type: mediaType, omitted: `${data.length} characters of base64 are not kept` };
}

function cut(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  return `${text.slice(0, MAX_CHARACTERS)} [${text.length - MAX_CHARACTERS} more characters are not kept]`;
}
