import { spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { setTimeout as delay, setImmediate as immediately } from 'node:timers/promises';
import type { Receiver } from '../channels/channel.ts';
import { HttpChannel } from '../channels/http.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { bytesAt, idBytes, idValue, type Message, readMessage } from '../protocol/envelope.ts';
import { type Chunks, errorMessage, join, notificationMessage, toRpcError } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import { withoutLineBreaks } from '../protocol/sse.ts';
import { isProtocolVersion } from '../protocol/versions.ts';
import { checkReachable } from './client.ts';
import { complain } from './output.ts';
import { findConfig, home } from './paths.ts';
import { endpointOf } from './words.ts';

export interface BridgeFlags {
  url: string;
  project?: string;
  config?: string;
}

const MAX_BYTES = 64 * 1024 * 1024;
const START_MS = 15_000;
const LAST_ANSWERS_MS = 30_000;
/** A Switchboard that was started for a bridge ends when it has had no client for this long. */
const IDLE_EXIT_SECONDS = 300;

/** Speaks MCP on stdin and stdout, and passes everything to the running Switchboard. Ends with stdin. */
export async function bridge(flags: BridgeFlags): Promise<void> {
  await ensureRunning(flags);
  const session = new BridgedSession(endpointOf(flags), () => ensureRunning(flags));
  const isOver = await new Promise<boolean>((resolve) => {
    const lines = new LineSplitter(MAX_BYTES, {
      line: (chunks) => {
        const line = join(chunks);
        // What the network says comes first: in one turn of the loop a stream ends and frees its connection, in the
        // next one that connection is seen to be closed. It must not carry the message.
        setImmediate(() => setImmediate(() => session.fromClient(line)));
      },
      tooLong: () =>
        session.refuse(new SwitchboardError('too_large', `The message is over ${MAX_BYTES} bytes.`)),
    });
    process.stdin.on('data', (chunk: Buffer) => lines.push(chunk));
    process.stdin.on('end', () => {
      lines.end();
      resolve(false);
    });
    process.stdin.on('error', () => resolve(true));
    process.stdout.on('error', () => resolve(true));
    process.once('SIGTERM', () => resolve(true));
    process.once('SIGINT', () => resolve(true));
  });
  // Whoever pipes requests in closes the pipe behind them, and still wants the answers.
  if (!isOver) await Promise.race([session.answered(), delay(LAST_ANSWERS_MS, undefined, { ref: false })]);
  await session.close();
  // An open stdin would keep the process where a signal ended it.
  process.stdin.destroy();
}

/** Stands beside the URIs of followed resources. */
const LOG_LEVEL = Symbol('log level');

const listNotifications = ['tools', 'resources', 'prompts'].map((list) =>
  notificationMessage(`notifications/${list}/list_changed`),
);

/**
 * One client on stdio, one session on HTTP. When Switchboard is restarted, the session is opened again, and the
 * requests go there that have certainly not reached the old one.
 */
class BridgedSession implements Receiver {
  private readonly endpoint: string;
  private readonly ensureRunning: () => Promise<void>;
  private channel: HttpChannel;
  private nextRequest = 1;
  private readonly unanswered = new Map<number, Message>();
  private readonly sentAgain = new WeakSet<Message>();
  /** What the client asked for once and still wants of a new session: a log level, resources that it follows. */
  private readonly wishes = new Map<unknown, Message>();
  /** Requests of our own: the client does not see their answers. */
  private readonly ours = new Set<number>();
  /** The client's, once it was answered. */
  private initialize: Message | undefined;
  /** The request whose answer tells the protocol version. */
  private initializing: { request: number; isOurs: boolean } | undefined;
  /** What waits until there is a session. */
  private held: Message[] | undefined;
  private isClosed = false;
  private whenAnswered: (() => void) | undefined;

  constructor(endpoint: string, ensureRunning: () => Promise<void>) {
    this.endpoint = endpoint;
    this.ensureRunning = ensureRunning;
    this.channel = this.open();
  }

  fromClient(line: Buffer): void {
    try {
      const message = readMessage(line);
      if (this.held !== undefined) this.held.push(message);
      else this.send(message);
    } catch (error) {
      this.refuse(asSwitchboardError(error));
    }
  }

  /** Answers a message whose id is not known. */
  refuse(error: SwitchboardError): void {
    this.toClient([errorMessage(undefined, toRpcError(error))]);
  }

  message(chunks: Chunks, request?: number): void {
    const isInitialize = request !== undefined && request === this.initializing?.request;
    if (request !== undefined) this.settleIfAnswer(chunks, request, isInitialize);
    if (isInitialize && this.initializing?.isOurs) this.resumed();
    else if (request === undefined || !this.ours.delete(request)) this.toClient(chunks);
    if (isInitialize) this.initialized();
    this.noticeLastAnswer();
  }

  failed(request: number, error: SwitchboardError, sent: boolean): void {
    if (request === this.initializing?.request && this.initializing.isOurs) this.giveUp(error);
    const message = this.unanswered.get(request);
    this.unanswered.delete(request);
    if (message === undefined) return;
    if (sent || this.isClosed || this.sentAgain.has(message)) {
      this.toClient([errorMessage(idBytes(message), toRpcError(error))]);
      if (request === this.initializing?.request) this.initialized();
      this.noticeLastAnswer();
      return;
    }
    this.sentAgain.add(message);
    this.held ??= [];
    this.held.push(message);
  }

  closed(error: SwitchboardError): void {
    for (const request of [...this.unanswered.keys()]) this.failed(request, error, true);
    if (this.isClosed) return;
    this.held ??= [];
    this.reopen().catch((failure: unknown) => this.giveUp(failure));
  }

  paused(): void {}

  stale(): void {}

  missed(): void {}

  log(line: string): void {
    complain(line);
  }

  /** Settles when every request of the client has its answer. */
  async answered(): Promise<void> {
    // Two turns, as the lines had that were read last.
    await immediately();
    await immediately();
    await new Promise<void>((resolve) => {
      this.whenAnswered = resolve;
      this.noticeLastAnswer();
    });
  }

  close(): Promise<void> {
    this.isClosed = true;
    return this.channel.close();
  }

  private noticeLastAnswer(): void {
    const isWaiting = this.unanswered.size > 0 || (this.held?.length ?? 0) > 0;
    if (!isWaiting) this.whenAnswered?.();
  }

  /** The client's initialize has its answer: what it sent behind it can go. */
  private initialized(): void {
    const isOurs = this.initializing?.isOurs;
    this.initializing = undefined;
    if (isOurs === false) this.sendHeld();
  }

  private sendHeld(): void {
    const held = this.held ?? [];
    this.held = undefined;
    for (const message of held) {
      if (this.held === undefined) this.send(message);
      else (this.held as Message[]).push(message);
    }
  }

  private open(): HttpChannel {
    return new HttpChannel({ url: this.endpoint, headers: {} }, MAX_BYTES, this);
  }

  private send(message: Message): void {
    if (message.kind !== 'request') {
      this.channel.send(message.bytes);
      if (message.method === 'notifications/cancelled') this.cancelled(message);
      return;
    }
    const request = this.nextRequest++;
    this.unanswered.set(request, message);
    this.remember(message);
    this.channel.send(message.bytes, request);
    if (message.method !== 'initialize') return;
    // There is no session to send anything else to before this is answered.
    this.initializing = { request, isOurs: false };
    this.held ??= [];
  }

  /** What is cancelled gets no answer, not even that there is none. */
  private cancelled({ bytes, requestId }: Message): void {
    const id = requestId && idValue(bytes, requestId);
    for (const [request, message] of this.unanswered) {
      if (message.id !== id || message.method === 'initialize') continue;
      this.unanswered.delete(request);
      this.channel.abandon(request);
    }
    this.noticeLastAnswer();
  }

  private remember(message: Message): void {
    if (message.method === 'logging/setLevel') this.wishes.set(LOG_LEVEL, message);
    if (message.method === 'resources/subscribe') this.wishes.set(message.uri?.value, message);
    if (message.method === 'resources/unsubscribe') this.wishes.delete(message.uri?.value);
  }

  /** A request whose answer is not for the client. */
  private sendOurs({ bytes }: Message): number {
    const request = this.nextRequest++;
    this.ours.add(request);
    this.channel.send(bytes, request);
    return request;
  }

  private settleIfAnswer(chunks: Chunks, request: number, isInitialize: boolean): void {
    const bytes = join(chunks);
    const { kind } = readMessage(bytes);
    if (kind !== 'result' && kind !== 'error') return;
    const message = this.unanswered.get(request);
    this.unanswered.delete(request);
    if (isInitialize && kind === 'result') {
      this.initialize ??= message;
      const { result } = JSON.parse(bytes.toString()) as { result?: { protocolVersion?: unknown } };
      if (isProtocolVersion(result?.protocolVersion)) this.channel.ready(result.protocolVersion);
    }
    this.channel.answered(request);
  }

  private async reopen(): Promise<void> {
    await this.ensureRunning();
    if (this.isClosed) return;
    this.channel = this.open();
    if (this.initialize === undefined) {
      this.resumed();
      return;
    }
    this.initializing = { request: this.sendOurs(this.initialize), isOurs: true };
  }

  private resumed(): void {
    if (this.initialize !== undefined) {
      this.channel.send(notificationMessage('notifications/initialized'));
      for (const message of this.wishes.values()) this.sendOurs(message);
      // Another Switchboard may have other servers.
      for (const notification of listNotifications) this.toClient([notification]);
    }
    this.sendHeld();
  }

  private giveUp(failure: unknown): void {
    const error = asSwitchboardError(failure);
    complain(error.message);
    for (const { kind, bytes, idSpan } of this.held ?? []) {
      if (kind === 'request') this.toClient([errorMessage(bytesAt(bytes, idSpan!), toRpcError(error))]);
    }
    this.held = [];
    process.stdin.emit('end');
  }

  private toClient(chunks: Chunks): void {
    process.stdout.write(Buffer.concat([...chunks.map(withoutLineBreaks), Buffer.from('\n')]));
  }
}

/** As `npm start` does it: a heap that begins small collects its garbage too often. */
const HEAP_FLAG = '--initial-heap-size=128';

async function ensureRunning({ url, config }: BridgeFlags): Promise<void> {
  if (await isRunning(url)) return;
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const folder = home();
  mkdirSync(folder, { recursive: true });
  const log = openSync(joinPath(folder, 'switchboard.log'), 'a');
  const words = ['up', '--config', findConfig(config), '--host', host, '--port', port || '80'];
  const child = spawn(
    process.execPath,
    [HEAP_FLAG, process.argv[1]!, ...words, '--exit-when-idle', String(IDLE_EXIT_SECONDS)],
    {
      detached: true,
      stdio: ['ignore', log, log],
    },
  );
  let exited = false;
  child.once('exit', () => {
    exited = true;
  });
  child.once('error', () => {
    exited = true;
  });
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    if (await isRunning(url)) {
      child.unref();
      return;
    }
    // Two bridges may start at once: the one that lost finds the other's.
    if (exited && !(await isRunning(url))) break;
    await delay(50);
  }
  throw new SwitchboardError(
    'invalid_config',
    `Switchboard did not start at ${url}; ${joinPath(folder, 'switchboard.log')} says why.`,
  );
}

async function isRunning(url: string): Promise<boolean> {
  return checkReachable(url).then(
    () => true,
    () => false,
  );
}
