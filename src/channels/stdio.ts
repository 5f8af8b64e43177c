import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import { join } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import type { Channel, Receiver } from './channel.ts';
import { LastWords } from './last-words.ts';
import { LinePipe, LineReader, MAX_LOG_LINE } from './line-pipe.ts';
import { DEADLINES, endGroup, stopGroup } from './process-group.ts';
import { QuotingError } from './quoting-error.ts';

export interface StdioTarget {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
}

/** Whoever keeps account of our children, so that none outlives us. */
export interface ChildRecord {
  /** What every child has in its environment. */
  readonly environment: Record<string, string>;
  /** Whether children get our proxies and certificate authorities. */
  readonly inheritsNetwork: boolean;
  /** Settles when a child may be started: one in each turn of the event loop, first come, first served. */
  turn(): Promise<void>;
  /** A child was started; it leads a process group of its own. */
  started(pid: number): void;
  /** Everything in that child's group is gone. */
  ended(pid: number): void;
}

/** Of what a process said last. */
const SHOWN_CHARACTERS = 2_000;
/** What a child wrote before it died is read by then, also where another process keeps its pipes open. */
const DRAIN_MS = 1_000;

/** A server that we run as a child process, in a process group of its own. */
export class StdioChannel implements Channel {
  readonly isStreamable = false;
  private readonly receiver: Receiver;
  private readonly record: ChildRecord;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Undefined where there is no process. */
  private readonly pipe: LinePipe | undefined;
  private ended = false;
  private closing: Promise<void> | undefined;
  private readonly lastWords = new LastWords();

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
    // 'close' and not 'exit': what the child wrote before it died still counts.
    this.child.on('close', (code, signal) => this.childClosed(code, signal));
    this.child.on('exit', () => this.leaderGone());
    // Where the process could not be made, its pipes may be missing too; the error event tells why.
    if (this.child.pid === undefined) return;
    this.child.stdin.on('error', () => this.pipeClosed('input'));
    this.pipe = new LinePipe(this.child.stdin, this.child.stdout, maxBytes, receiver);
    this.child.stdout.on('end', () => {
      this.pipe?.end();
      this.pipeClosed('output');
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

  sendStanding(message: Chunks, request: number): void {
    this.send(message, request);
  }

  settle(): void {}

  abandon(): void {}

  ready(): void {}

  close(): Promise<void> {
    this.ended = true;
    // What was said last, such as that a call is cancelled, still reaches it.
    this.pipe?.flush();
    this.closing ??= this.untilGone(stopGroup(this.child, DEADLINES));
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
    this.lastWords.add(line);
    this.receiver.log(line);
  }

  /** The child is gone; whatever it started and left behind goes too, or its pipes would stay open. */
  private leaderGone(): void {
    if (this.child.pid === undefined) return;
    this.closing ??= this.untilGone(endGroup(this.child.pid, DEADLINES.killAfterMs));
    // What survives in its group for a while, or has left the group, must neither hide that end nor keep us running.
    this.unlessClosedSoon(() => {
      this.child.stdout.destroy();
      this.child.stderr.destroy();
    });
  }

  /** A child that cannot be spoken with any more is of no use, even where it lives on. */
  private pipeClosed(which: 'input' | 'output'): void {
    if (this.ended) return;
    this.unlessClosedSoon(() => {
      this.end(
        new SwitchboardError('server_unavailable', `The server closed its ${which} and did not exit.`),
      );
      void this.close();
    });
  }

  private unlessClosedSoon(action: () => void): void {
    const patience = setTimeout(action, DRAIN_MS);
    this.child.once('close', () => clearTimeout(patience));
  }

  private async untilGone(ending: Promise<void>): Promise<void> {
    await ending;
    if (this.child.pid !== undefined) this.record.ended(this.child.pid);
  }

  private childClosed(code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    const { best } = this.lastWords;
    const statement = `The server's process ${how}${best === '' ? '' : '; its last words: '}`;
    this.end(
      new QuotingError(
        'server_unavailable',
        { statement, quote: best, shown: SHOWN_CHARACTERS },
        { exitCode: code, signal },
      ),
    );
  }

  private end(error: SwitchboardError): void {
    if (this.ended) return;
    this.ended = true;
    this.receiver.onClosed(error);
  }
}

function describeSpawnError(error: NodeJS.ErrnoException, target: StdioTarget): SwitchboardError {
  const why =
    error.code === 'ENOENT'
      ? whatIsMissing(target)
      : error.code === 'EACCES'
        ? `"${target.command}" may not be executed`
        : error.message;
  return new SwitchboardError('server_start_failed', `The server's process cannot be started: ${why}.`, {
    cause: error,
  });
}

/** Programs that come with others, which people know by another name. */
const broughtBy: Record<string, string> = { uvx: 'uv', uv: 'uv', npx: 'Node.js', npm: 'Node.js' };

/** The system says of all of these that something does not exist, and not what. */
function whatIsMissing({ command, cwd }: StdioTarget): string {
  if (!existsSync(cwd)) return `the folder ${cwd} does not exist`;
  const isPath = command.includes('/');
  if (isPath && existsSync(resolve(cwd, command))) {
    return `"${command}" needs a program to run it (the one in its first line) that was not found`;
  }
  const origin = Object.hasOwn(broughtBy, command) ? broughtBy[command] : undefined;
  const advice = origin === undefined ? '' : `: ${command} comes with ${origin}, which must be installed`;
  return `"${command}" was not found${isPath ? '' : ' in the PATH'}${advice}`;
}

/** What a child needs to find its programs, its home and its language, and nothing that could be a secret. */
const safeNames = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE'];
/** How programs find their way out of the network that we are in, in capitals or small letters. */
const proxyNames = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
/** Whom programs trust in the network that we are in. */
const authorityNames = [
  ...['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE'],
  ...['CURL_CA_BUNDLE', 'AWS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'DENO_CERT', 'NODE_USE_ENV_PROXY'],
];

const safe = new Set(safeNames);
const ofNetwork = new Set([...proxyNames.flatMap((name) => [name, name.toLowerCase()]), ...authorityNames]);

/**
 * The environment of a child: the safe part of ours, and what is configured for it. `inheritsNetwork`: with our proxies, and their
 * passwords, and the certificate authorities that we trust.
 */
export function childEnvironment(
  own: Record<string, string | undefined>,
  configured: Record<string, string>,
  inheritsNetwork: boolean,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    const isGiven = safe.has(name) || name.startsWith('LC_') || (inheritsNetwork && ofNetwork.has(name));
    if (value !== undefined && isGiven) environment[name] = value;
  }
  return { ...environment, ...configured };
}
