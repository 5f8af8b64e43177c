import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir, userInfo } from 'node:os';
import type { Readable } from 'node:stream';

interface ProcessConfig {
  cmd: string;
  args?: string[];
  envs?: Record<string, string>;
}

interface StartRequest {
  process: ProcessConfig;
  stdin?: boolean;
  tag?: string;
}

interface Selecting {
  process: { pid?: number; tag?: string };
  input?: { stdin?: string };
  signal?: string;
}

const END_STREAM = 2;

/** The process service of an E2B sandbox. Like the original, it drops unread output and survives cut streams. */
export class Envd {
  private readonly variables: Record<string, string>;
  private readonly isOld: boolean;
  private readonly running = new Map<number, SandboxedProcess>();

  constructor(variables: Record<string, string>, { isOld }: { isOld: boolean }) {
    this.variables = variables;
    this.isOld = isOld;
  }

  /** The process groups that its processes lead. */
  get pids(): number[] {
    return [...this.running.keys()];
  }

  async handle(method: string, body: Buffer, request: IncomingMessage, response: ServerResponse) {
    if (method === 'Start') return this.start(firstFrame(body) as StartRequest, request, response);
    if (method === 'Connect') return this.connect(firstFrame(body) as Selecting, request, response);
    const message = JSON.parse(body.toString()) as Selecting;
    const process = this.find(message);
    if (process === undefined) return refuse(response, 404, 'not_found', 'process not found');
    if (method === 'SendInput') await process.write(Buffer.from(message.input?.stdin ?? '', 'base64'));
    else if (method === 'CloseStdin') process.child.stdin?.end();
    else if (method === 'SendSignal')
      process.child.kill(message.signal === 'SIGNAL_SIGKILL' ? 'SIGKILL' : 'SIGTERM');
    else return refuse(response, 404, 'unimplemented', method);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  }

  /** Cuts all connections; the processes keep running. */
  cutStreams(): void {
    for (const process of this.running.values()) process.cut();
  }

  async kill(): Promise<void> {
    await Promise.all(
      [...this.running.values()].map(async (process) => {
        process.cut();
        const closed = once(process.child, 'close');
        killGroup(process.child);
        await closed;
      }),
    );
  }

  private async start(message: StartRequest, request: IncomingMessage, response: ServerResponse) {
    if (this.isOld && request.headers.authorization === undefined)
      return failStream(response, 'unauthenticated', 'no user specified');
    const { cmd, args = [], envs = {} } = message.process;
    const { username } = userInfo();
    const child = spawn(cmd, args, {
      cwd: tmpdir(),
      env: {
        PATH: process.env.PATH,
        // The SDK runs commands in login shells, and the developer's profile may be slow or have side effects.
        HOME: tmpdir(),
        USER: username,
        LOGNAME: username,
        ...this.variables,
        ...envs,
      },
      stdio: [message.stdin === true ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      detached: true,
    });
    child.stdin?.on('error', () => {});
    const { pid } = child;
    if (pid === undefined) {
      const [error] = (await once(child, 'error')) as [Error];
      return failStream(response, 'invalid_argument', error.message);
    }
    const started = new SandboxedProcess(child, message.tag);
    this.running.set(pid, started);
    child.once('close', () => this.running.delete(pid));
    started.tell(request, response);
  }

  private connect(message: Selecting, request: IncomingMessage, response: ServerResponse) {
    const process = this.find(message);
    if (process === undefined) failStream(response, 'not_found', 'process not found');
    else process.tell(request, response);
  }

  private find({ process: { pid, tag } }: Selecting): SandboxedProcess | undefined {
    if (pid !== undefined) return this.running.get(pid);
    return [...this.running.values()].find((each) => each.tag === tag);
  }
}

class SandboxedProcess {
  readonly child: ChildProcess;
  readonly tag: string | undefined;
  private readonly readers = new Set<ServerResponse>();

  constructor(child: ChildProcess, tag: string | undefined) {
    this.child = child;
    this.tag = tag;
    this.read('stdout', child.stdout!);
    this.read('stderr', child.stderr!);
    child.once('close', (code, signal) => {
      // The wording of Go.
      const status = signal === null ? `exit status ${code}` : `signal: ${signalTexts[signal] ?? signal}`;
      const end = { exitCode: code ?? -1, exited: signal === null, status };
      for (const reader of this.readers) {
        reader.write(frame(0, { event: { end: code === 0 ? end : { ...end, error: status } } }));
        reader.end(frame(END_STREAM, {}));
      }
    });
  }

  async write(bytes: Buffer): Promise<void> {
    const { stdin } = this.child;
    await new Promise<void>((resolve) => (stdin === null ? resolve() : stdin.write(bytes, () => resolve())));
  }

  tell(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/connect+json' });
    response.write(frame(0, { event: { start: { pid: this.child.pid } } }));
    this.readers.add(response);
    const seconds = Number(request.headers['keepalive-ping-interval']);
    const ping = setInterval(() => response.write(frame(0, { event: { keepalive: {} } })), seconds * 1_000);
    response.once('close', () => {
      clearInterval(ping);
      this.readers.delete(response);
      this.resume();
    });
  }

  cut(): void {
    for (const reader of this.readers) reader.destroy();
  }

  /** A slow reader blocks the process. */
  private read(name: 'stdout' | 'stderr', stream: Readable): void {
    stream.on('data', (chunk: Buffer) => {
      const data = frame(0, { event: { data: { [name]: chunk.toString('base64') } } });
      for (const reader of this.readers) {
        if (reader.write(data)) continue;
        this.child.stdout?.pause();
        this.child.stderr?.pause();
        reader.once('drain', () => this.resume());
      }
    });
  }

  private resume(): void {
    this.child.stdout?.resume();
    this.child.stderr?.resume();
  }
}

const signalTexts: Record<string, string> = {
  SIGKILL: 'killed',
  SIGTERM: 'terminated',
  SIGSEGV: 'segmentation fault (core dumped)',
};

function frame(flags: number, message: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}

/** The response has status 200 even if the stream fails. */
function failStream(response: ServerResponse, code: string, message: string): void {
  response.writeHead(200, { 'content-type': 'application/connect+json' });
  response.end(frame(END_STREAM, { error: { code, message } }));
}

function firstFrame(body: Buffer): unknown {
  return JSON.parse(body.subarray(5, 5 + body.readUInt32BE(1)).toString());
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ code, message }));
}

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}
