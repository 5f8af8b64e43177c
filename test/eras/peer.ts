import type { Inbox } from '../helpers/inbox.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';

/** Legacy: 2025-11-25, with `initialize`. Modern: 2026-07-28, stateless. */
export type Era = 'legacy' | 'modern';

export type Target =
  | { url: string; headers?: Record<string, string> }
  | { command: string; args: string[]; env: Record<string, string> };

export interface Question {
  message: string;
  requestedSchema?: unknown;
}

export type ElicitAnswer =
  | { action: 'accept'; content: Record<string, string> }
  | { action: 'decline' | 'cancel' };

export type SampleAnswer = {
  role: 'assistant';
  model: string;
  content: { type: 'text'; text: string };
};

/** How a client responds to server requests. It declares the capabilities for these members only. */
export interface Answers {
  elicit?(question: Question): ElicitAnswer;
  sample?(request: { messages: unknown[] }): SampleAnswer;
  roots?(): { uri: string; name: string }[];
}

interface CallOptions {
  signal?: AbortSignal;
  logLevel?: 'info' | 'error';
  meta?: Record<string, unknown>;
}

export interface ToolResult {
  content: { type: string; text?: string; [member: string]: unknown }[];
  structuredContent?: unknown;
  isError?: boolean | undefined;
  [member: string]: unknown;
}

export interface Contents {
  uri: string;
  text?: string;
  [member: string]: unknown;
}

export interface Peer extends AsyncDisposable {
  readonly era: Era;
  /** Before the SDK handles them. */
  readonly received: Inbox<RpcMessage>;
  toolNames(): Promise<string[]>;
  resourceUris(): Promise<string[]>;
  templateUris(): Promise<string[]>;
  promptNames(): Promise<string[]>;
  callTool(name: string, given?: Record<string, unknown>, options?: CallOptions): Promise<ToolResult>;
  readResource(uri: string): Promise<Contents[]>;
  getPrompt(name: string, given?: Record<string, string>): Promise<string>;
  complete(prompt: string, argument: { name: string; value: string }): Promise<string[]>;
  /** Subscribes to the tool list and to these resources. */
  follow(...uris: string[]): Promise<void>;
}
