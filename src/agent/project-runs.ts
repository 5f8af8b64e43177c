import { randomUUID } from 'node:crypto';
import { SwitchboardError } from '../errors.ts';
import type { ChatError } from './chat-error.ts';
import type { ChatResult, ToolCallRecord } from './events.ts';
import type { Usage } from './model.ts';

/** How often it is told that a chat still goes on. One of which nothing is heard for a minute and a half has failed. */
const SEEN_MS = 30_000;
const PATIENCE_MS = 10_000;
/** More is not kept anyway. */
const MAX_CHARACTERS = 256 * 1024;

export interface NewProjectRun {
  agent: string;
  model: string;
  system: string | null;
  tools: readonly string[] | null;
  input: string;
}

/** Tells a project of a Switchboard of the chats that use it, so that they stand among its runs. */
export class ProjectRuns {
  private readonly place: URL;
  private readonly warned: (message: string) => void;

  /** `url`: where the project speaks MCP. */
  constructor(url: string, warned: (message: string) => void) {
    const project = /\/mcp\/([^/]+)\/?$/.exec(new URL(url).pathname)?.[1] ?? 'default';
    this.place = new URL(`/api/v1/projects/${project}/runs`, url);
    this.warned = warned;
  }

  /** Undefined where it is not kept: whoever is there keeps no runs, or does not take it, which is warned about. */
  async begin(run: NewProjectRun): Promise<ProjectRun | undefined> {
    const answer = await this.send('POST', '', run);
    const id = (answer as { id?: unknown } | undefined)?.id;
    if (typeof id !== 'string') return undefined;
    return new ProjectRun(
      id,
      async (method, path, body) => void (await this.send(method, `/${id}${path}`, body)),
    );
  }

  /** Never fails: what is only written down must not end a chat. */
  private async send(method: string, path: string, body: object): Promise<unknown> {
    try {
      const response = await fetch(`${this.place.href}${path}`, {
        ...{ method, body: JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE_MS) },
        headers: { 'content-type': 'application/json' },
      });
      const text = await response.text();
      if (response.ok) return text === '' ? {} : JSON.parse(text);
      // Whoever is there keeps nothing, or is no Switchboard.
      if (response.status === 404 || text.includes('"no_database"')) return undefined;
      throw new Error(`${response.status} ${text.slice(0, 300)}`);
    } catch (error) {
      this.warned(`The run cannot be recorded at ${this.place.origin}: ${(error as Error).message}`);
      return undefined;
    }
  }
}

type Send = (method: string, path: string, body: object) => Promise<void>;

/** One chat, in the records of a project. */
export class ProjectRun {
  readonly id: string;
  private readonly send: Send;
  private readonly timer: NodeJS.Timeout;
  private sent: Promise<void> = Promise.resolve();

  constructor(id: string, send: Send) {
    this.id = id;
    this.send = send;
    this.timer = setInterval(() => this.tell('PATCH', '', {}), SEEN_MS).unref();
  }

  /** One that did not go through the project: to a tool of this process, or to none. */
  call({ step, name, server, input, content, isError, outcome, durationMs }: ToolCallRecord): void {
    const why = content.map((item) => (item.type === 'text' ? item.text : '')).join('\n');
    const status = outcome === undefined ? 'error' : isError ? 'tool_error' : 'ok';
    const code = server === undefined ? 'unknown_tool' : 'server_error';
    const call = {
      ...{ id: randomUUID(), step, tool: name, server: server ?? null, status, duration_ms: durationMs },
      input: bounded(input) ?? {},
      ...(outcome === undefined ? { error: { code, message: why } } : { output: bounded(outcome) }),
    };
    this.tell('POST', '/calls', { calls: [call] });
  }

  /** Settles when all of it is told. */
  async end(end: ChatResult | ChatError): Promise<void> {
    clearInterval(this.timer);
    const { text, steps, usage } = end;
    const common = { output: text, steps, usage: usageOf(usage) };
    if (!(end instanceof SwitchboardError)) {
      this.tell('PATCH', '', { ...common, status: 'completed', stop_reason: end.stopReason });
    } else {
      const { code, message } = end;
      const status = code === 'cancelled' ? 'cancelled' : 'failed';
      this.tell('PATCH', '', { ...common, output: null, status, error: { code, message } });
    }
    await this.sent;
  }

  private tell(method: string, path: string, body: object): void {
    this.sent = this.sent.then(() => this.send(method, path, body));
  }
}

function bounded<Value extends object>(value: Value): Value | { omitted: string } {
  const { length } = JSON.stringify(value);
  return length <= MAX_CHARACTERS ? value : { omitted: `${length} characters are too many to be kept` };
}

function usageOf({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: Usage) {
  return {
    ...{ input_tokens: inputTokens, output_tokens: outputTokens },
    ...{ cache_read_tokens: cacheReadTokens, cache_write_tokens: cacheWriteTokens },
  };
}
