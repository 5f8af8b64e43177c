import { randomUUID } from 'node:crypto';
import { SwitchboardError } from '../errors.ts';
import type { ChatError } from './chat-error.ts';
import type { ChatResult, ToolCallRecord } from './events.ts';
import { usageRow } from './model.ts';

/** A run without an update for 90 s counts as failed. */
const KEEPALIVE_MS = 30_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** The API stores no more. */
const MAX_CHARACTERS = 256 * 1024;

export interface NewProjectRun {
  agent: string;
  model: string;
  system: string | null;
  tools: readonly string[] | null;
  input: string;
}

/** Records chats as runs of a project of a Switchboard. */
export class ProjectRuns {
  private readonly runsUrl: URL;
  private readonly warned: (message: string) => void;

  /** `url` is the project's MCP endpoint. */
  constructor(url: string, warned: (message: string) => void) {
    const project = /\/mcp\/([^/]+)\/?$/.exec(new URL(url).pathname)?.[1] ?? 'default';
    this.runsUrl = new URL(`/api/v1/projects/${project}/runs`, url);
    this.warned = warned;
  }

  /** Undefined if the run is not recorded: the server has no runs, or refuses it with a warning. */
  async begin(run: NewProjectRun): Promise<ProjectRun | undefined> {
    const created = await this.send('POST', '', run);
    const id = (created as { id?: unknown } | undefined)?.id;
    if (typeof id !== 'string') return undefined;
    return new ProjectRun(
      id,
      async (method, path, body) => void (await this.send(method, `/${id}${path}`, body)),
    );
  }

  /** Never rejects, because a failure to record must not end a chat. */
  private async send(method: string, path: string, body: object): Promise<unknown> {
    try {
      const response = await fetch(`${this.runsUrl.href}${path}`, {
        ...{ method, body: JSON.stringify(body), signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) },
        headers: { 'content-type': 'application/json' },
      });
      const text = await response.text();
      if (response.ok) return text === '' ? {} : JSON.parse(text);
      // A Switchboard without a database, or another program.
      if (response.status === 404 || text.includes('"no_database"')) return undefined;
      throw new Error(`${response.status} ${text.slice(0, 300)}`);
    } catch (error) {
      this.warned(`Cannot record the run at ${this.runsUrl.origin}: ${(error as Error).message}`);
      return undefined;
    }
  }
}

type Send = (method: string, path: string, body: object) => Promise<void>;

/** One chat in the records of a project. */
export class ProjectRun {
  readonly id: string;
  private readonly send: Send;
  private readonly timer: NodeJS.Timeout;
  private sent: Promise<void> = Promise.resolve();

  constructor(id: string, send: Send) {
    this.id = id;
    this.send = send;
    this.timer = setInterval(() => this.enqueue('PATCH', '', {}), KEEPALIVE_MS).unref();
  }

  /** Records a call that did not go through the project: of a native or unknown tool. */
  call({ step, name, server, input, content, isError, outcome, durationMs }: ToolCallRecord): void {
    const why = content.map((item) => (item.type === 'text' ? item.text : '')).join('\n');
    const status = outcome === undefined ? 'error' : isError ? 'tool_error' : 'ok';
    const code = server === undefined ? 'unknown_tool' : 'server_error';
    const call = {
      ...{ id: randomUUID(), step, tool: name, server: server ?? null, status, duration_ms: durationMs },
      input: bounded(input) ?? {},
      ...(outcome === undefined ? { error: { code, message: why } } : { output: bounded(outcome) }),
    };
    this.enqueue('POST', '/calls', { calls: [call] });
  }

  /** Resolves when everything is sent. */
  async end(end: ChatResult | ChatError): Promise<void> {
    clearInterval(this.timer);
    const { text, steps, usage } = end;
    const common = { output: text, steps, usage: usageRow(usage) };
    if (!(end instanceof SwitchboardError)) {
      this.enqueue('PATCH', '', { ...common, status: 'completed', stop_reason: end.stopReason });
    } else {
      const { code, message } = end;
      const status = code === 'cancelled' ? 'cancelled' : 'failed';
      this.enqueue('PATCH', '', { ...common, output: null, status, error: { code, message } });
    }
    await this.sent;
  }

  private enqueue(method: string, path: string, body: object): void {
    this.sent = this.sent.then(() => this.send(method, path, body));
  }
}

function bounded<Value extends object>(value: Value): Value | { omitted: string } {
  const { length } = JSON.stringify(value);
  return length <= MAX_CHARACTERS ? value : { omitted: `${length} characters are too many to store` };
}
