import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import { join } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import type { Channel, Receiver } from './channel.ts';
import { QuotingError } from './errors.ts';
import { LinePipe, LineReader, MAX_LOG_LINE } from './line-pipe.ts';
import { OutputTail } from './output-tail.ts';
import { DEADLINES, endGroup, stopGroup } from './process-group.ts';

export interface StdioTarget {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
}

/** Records our children, so that none outlives us. */
export interface ChildRecord {
  /** Variables that every child gets. */
  readonly environment: Record<string, string>;
  /** Whether children get our proxies and certificate authorities. */
  readonly inheritsNetwork: boolean;
  /** Resolves when a child may be started: one per turn of the event loop, in order. */
  turn(): Promise<void>;
  /** A child was started that leads its own process group. */
  started(pid: number): void;
  /** The whole process group of that child is gone. */
  ended(pid: number): void;
}

const SHOWN_OUTPUT = 2_000;
/** How long to read the output of a child that exited, in case another process keeps its pipes open. */
const DRAIN_MS = 1_000;

/** A server that runs as a child process, in its own process group. */
export class StdioChannel implements Channel {
  readonly isStreamable = false;
  private readonly receiver: Receiver;
  private readonly record: ChildRecord;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Undefined if the process could not be created. */
  private readonly pipe: LinePipe | undefined;
  private ended = false;
  private closing: Promise<void> | undefined;
  private readonly errorOutput = new OutputTail();

  constructor(target: StdioTarget, maxBytes: number, record: ChildRecord, receiver: Receiver) {
    this.receiver = receiver;
    this.record = record;
    this.child = spawn(target.command, target.args, {
      cwd: target.cwd,
      env: childEnvironment(process.env, { ...target.env, ...record.environment }, record.inheritsNetwork),
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    if (this.child.pid !== undefined) record.started(this.child.pid);
    this.child.on('error', (error) => this.end(describeSpawnError(error, target)));
    // Not 'exit': what the child wrote before it exited still counts.
    this.child.on('close', (code, signal) => this.childClosed(code, signal));
    this.child.on('exit', () => this.childExited());
    // Then the pipes may be missing too; the error event has the reason.
    if (this.child.pid === undefined) return;
    this.child.stdin.on('error', () => this.pipeClosed('stdin'));
    this.pipe = new LinePipe(this.child.stdin, this.child.stdout, maxBytes, receiver);
    this.child.stdout.on('end', () => {
      this.pipe?.end();
      this.pipeClosed('stdout');
    });
    this.child.stdout.on('error', () => {});
    this.readErrors();
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  send(message: Chunks, request?: number): void {
    if (!this.ended) this.pipe?.send(message, request);
  }

  settle(): void {}

  abandon(): void {}

  ready(): void {}

  close(): Promise<void> {
    this.ended = true;
    // Sends the last messages, such as cancellations.
    this.pipe?.flush();
    this.closing ??= this.recordEnd(stopGroup(this.child, DEADLINES));
    return this.closing;
  }

  private readErrors(): void {
    const lines = new LineSplitter(MAX_LOG_LINE, {
      line: (chunks) => this.logError(join(chunks).toString()),
      tooLong: () => this.logError(`stderr: a line over ${MAX_LOG_LINE} bytes is skipped`),
    });
    const reader = new LineReader(this.child.stderr, lines);
    this.child.stderr.on('end', () => reader.end());
    this.child.stderr.on('error', () => {});
  }

  private logError(line: string): void {
    this.errorOutput.add(line);
    this.receiver.log(line);
  }

  /** Ends processes that the child left behind, which would keep its pipes open. */
  private childExited(): void {
    if (this.child.pid === undefined) return;
    this.closing ??= this.recordEnd(endGroup(this.child.pid, DEADLINES.killAfterMs));
    // A survivor in or outside the group must neither hide the exit nor keep us running.
    this.unlessClosedSoon(() => {
      this.child.stdout.destroy();
      this.child.stderr.destroy();
    });
  }

  /** A child without its pipes is of no use, even if it still runs. */
  private pipeClosed(which: 'stdin' | 'stdout'): void {
    if (this.ended) return;
    this.unlessClosedSoon(() => {
      const message = `The server closed its ${which} but did not exit.`;
      this.end(new SwitchboardError('server_unavailable', message));
      void this.close();
    });
  }

  private unlessClosedSoon(action: () => void): void {
    const timer = setTimeout(action, DRAIN_MS);
    this.child.once('close', () => clearTimeout(timer));
  }

  private async recordEnd(ending: Promise<void>): Promise<void> {
    await ending;
    if (this.child.pid !== undefined) this.record.ended(this.child.pid);
  }

  private childClosed(code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
    const { summary: quote } = this.errorOutput;
    const statement = `The server process ${how}${quote === '' ? '' : '; last output: '}`;
    const text = { statement, quote, shown: SHOWN_OUTPUT };
    this.end(new QuotingError('server_unavailable', text, { exitCode: code, signal }));
  }

  private end(error: SwitchboardError): void {
    if (this.ended) return;
    this.ended = true;
    this.receiver.onClosed(error);
  }
}

export function describeSpawnError(
  error: NodeJS.ErrnoException,
  target: Pick<StdioTarget, 'command' | 'cwd'>,
): SwitchboardError {
  const why =
    error.code === 'ENOENT'
      ? whatIsMissing(target)
      : error.code === 'EACCES'
        ? `"${target.command}" is not executable`
        : error.message;
  const message = `The server process cannot be started: ${why}.`;
  return new SwitchboardError('server_start_failed', message, { cause: error });
}

/** The package that provides a program. */
const installedWith: Record<string, string> = { uvx: 'uv', uv: 'uv', npx: 'Node.js', npm: 'Node.js' };

/** ENOENT does not say which of these does not exist. */
function whatIsMissing({ command, cwd }: Pick<StdioTarget, 'command' | 'cwd'>): string {
  if (!existsSync(cwd)) return `the folder ${cwd} does not exist`;
  const isPath = command.includes('/');
  if (isPath && existsSync(resolve(cwd, command))) {
    return `the interpreter in the first line of "${command}" was not found`;
  }
  const origin = Object.hasOwn(installedWith, command) ? installedWith[command] : undefined;
  const advice = origin === undefined ? '' : `; install ${origin}, which includes it`;
  return `"${command}" was not found${isPath ? '' : ' in PATH'}${advice}`;
}

/** Variables that programs need and that hold no secrets. */
const safeNames = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE'];
/** Upper or lower case. */
const proxyNames = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
const authorityNames = [
  ...['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE'],
  ...['CURL_CA_BUNDLE', 'AWS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'DENO_CERT', 'NODE_USE_ENV_PROXY'],
];

const safe = new Set(safeNames);
const network = new Set([...proxyNames.flatMap((name) => [name, name.toLowerCase()]), ...authorityNames]);

/** The safe part of our environment, and the configured variables. `inheritsNetwork`: also our proxies, with passwords, and CAs. */
export function childEnvironment(
  own: Record<string, string | undefined>,
  configured: Record<string, string>,
  inheritsNetwork: boolean,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    const isInherited = safe.has(name) || name.startsWith('LC_') || (inheritsNetwork && network.has(name));
    if (value !== undefined && isInherited) environment[name] = value;
  }
  return { ...environment, ...configured };
}
