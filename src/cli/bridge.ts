import { spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Receiver } from '../channels/channel.ts';
import { HttpChannel } from '../channels/http.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { bytesAt, type Message, readMessage } from '../protocol/envelope.ts';
import { type Chunks, errorMessage, join, toRpcError } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import { withoutLineBreaks } from '../protocol/sse.ts';
import { isProtocolVersion } from '../protocol/versions.ts';
import { checkReachable } from './client.ts';
import { complain } from './output.ts';
import { findConfig, home } from './paths.ts';

export interface BridgeFlags {
  url: string;
  config?: string;
}

const MAX_BYTES = 64 * 1024 * 1024;
const START_MS = 15_000;
/** A Switchboard that was started for a bridge ends when it has had no client for this long. */
const IDLE_EXIT_SECONDS = 300;

/** Speaks MCP on stdin and stdout, and passes everything to the running Switchboard. Ends with stdin. */
export async function bridge(flags: BridgeFlags): Promise<void> {
  await ensureRunning(flags);
  const session = new BridgedSession(flags.url, () => ensureRunning(flags));
  await new Promise<void>((resolve) => {
    const lines = new LineSplitter(MAX_BYTES, {
      line: (chunks) => session.fromClient(join(chunks)),
      tooLong: () =>
        session.refuse(new SwitchboardError('too_large', `The message is over ${MAX_BYTES} bytes.`)),
    });
    process.stdin.on('data', (chunk: Buffer) => lines.push(chunk));
    process.stdin.on('end', resolve);
    process.stdin.on('error', () => resolve());
    process.stdout.on('error', () => resolve());
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  await session.close();
  // An open stdin would keep the process where a signal ended it.
  process.stdin.destroy();
}

/** One client on stdio, one session on HTTP. When Switchboard is restarted, the session is opened again. */
class BridgedSession implements Receiver {
  private readonly url: string;
  private readonly ensureRunning: () => Promise<void>;
  private channel: HttpChannel;
  private nextRequest = 1;
  private readonly ids = new Map<number, Buffer>();
  private initialize: Buffer | undefined;
  /** The request whose answer tells the protocol version; when it is ours, the client does not see it. */
  private initializing: { request: number; isOurs: boolean } | undefined;
  private held: Message[] | undefined;
  private isClosed = false;

  constructor(url: string, ensureRunning: () => Promise<void>) {
    this.url = url;
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
    else this.toClient(chunks);
    if (isInitialize) this.initializing = undefined;
  }

  failed(request: number, error: SwitchboardError): void {
    const id = this.ids.get(request);
    this.ids.delete(request);
    if (id !== undefined) this.toClient([errorMessage(id, toRpcError(error))]);
  }

  closed(error: SwitchboardError): void {
    for (const request of [...this.ids.keys()]) this.failed(request, error);
    if (this.isClosed) return;
    this.held = [];
    this.reopen().catch((failure: unknown) => {
      complain(asSwitchboardError(failure).message);
      process.stdin.emit('end');
    });
  }

  paused(): void {}

  log(line: string): void {
    complain(line);
  }

  close(): Promise<void> {
    this.isClosed = true;
    return this.channel.close();
  }

  private open(): HttpChannel {
    return new HttpChannel({ url: `${this.url}/mcp`, headers: {} }, MAX_BYTES, this);
  }

  private send(message: Message): void {
    if (message.kind !== 'request') {
      this.channel.send(message.bytes);
      return;
    }
    const request = this.nextRequest++;
    this.ids.set(request, bytesAt(message.bytes, message.idSpan!));
    if (message.method === 'initialize') {
      this.initialize = message.bytes;
      this.initializing = { request, isOurs: false };
    }
    this.channel.send(message.bytes, request);
  }

  private settleIfAnswer(chunks: Chunks, request: number, isInitialize: boolean): void {
    const bytes = join(chunks);
    const { kind } = readMessage(bytes);
    if (kind !== 'result' && kind !== 'error') return;
    this.ids.delete(request);
    if (isInitialize && kind === 'result') {
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
    const request = this.nextRequest++;
    this.initializing = { request, isOurs: true };
    this.channel.send(this.initialize, request);
  }

  private resumed(): void {
    if (this.initialize !== undefined) {
      this.channel.send(Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}'));
    }
    const held = this.held ?? [];
    this.held = undefined;
    for (const message of held) this.send(message);
  }

  private toClient(chunks: Chunks): void {
    process.stdout.write(Buffer.concat([...chunks.map(withoutLineBreaks), Buffer.from('\n')]));
  }
}

async function ensureRunning({ url, config }: BridgeFlags): Promise<void> {
  if (await isRunning(url)) return;
  const { hostname, port } = new URL(url);
  const folder = home();
  mkdirSync(folder, { recursive: true });
  const log = openSync(joinPath(folder, 'switchboard.log'), 'a');
  const words = ['up', '--config', findConfig(config), '--host', hostname, '--port', port || '80'];
  const child = spawn(
    process.execPath,
    [process.argv[1]!, ...words, '--exit-when-idle', String(IDLE_EXIT_SECONDS)],
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
