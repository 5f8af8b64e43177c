import type { Sandbox } from 'e2b';
import { SwitchboardError } from '../../../errors.ts';
import type { Exit, InstanceSpec } from '../../driver.ts';

/** The SDK's low-level process API. Its public API decodes stdout as UTF-8, and keeps all output in memory. */
type Rpc = Sandbox['commands']['rpc'];
type Stream = ReturnType<Rpc['start']> | ReturnType<Rpc['connect']>;
type ProcessEvent = NonNullable<(Stream extends AsyncIterable<infer Message> ? Message : never)['event']>;
type Ended = Extract<ProcessEvent['event'], { case: 'end' }>['value'];

export interface Output {
  /** Resolves when the consumer can take more. Rejects when `left` is aborted. */
  stdout(bytes: Buffer, left: AbortSignal): Promise<void>;
  stderr(bytes: Buffer): void;
}

/** Identifies the server among the processes of its sandbox. */
const TAG = 'switchboard';
/** In seconds. Keeps idle streams open. */
const headers = { 'Keepalive-Ping-Interval': '50' };
const START_TIMEOUT_MS = 60_000;
/** A code of the Connect protocol. */
const UNAUTHENTICATED = 16;

export class SandboxProcess {
  readonly pid: number;
  private readonly sandbox: Sandbox;
  private readonly events: AsyncIterator<{ event?: ProcessEvent }>;
  private readonly stream: AbortController;

  static start(sandbox: Sandbox, spec: InstanceSpec, signal: AbortSignal): Promise<SandboxProcess> {
    const process = { cmd: spec.command!, args: [...spec.args], envs: { ...spec.environment } };
    const request = { process, stdin: spec.hasStdio, tag: TAG };
    return SandboxProcess.open(sandbox, (rpc, options) => rpc.start(request, options), signal);
  }

  static connect(sandbox: Sandbox): Promise<SandboxProcess> {
    const request = { process: { selector: { case: 'tag', value: TAG } } } as const;
    return SandboxProcess.open(sandbox, (rpc, options) => rpc.connect(request, options));
  }

  private static async open(
    sandbox: Sandbox,
    call: (rpc: Rpc, options: { headers: typeof headers; signal: AbortSignal }) => Stream,
    signal?: AbortSignal,
  ): Promise<SandboxProcess> {
    const stream = new AbortController();
    const giveUp = () => stream.abort(signal?.reason);
    signal?.addEventListener('abort', giveUp);
    const timer = setTimeout(() => stream.abort(new Error('no response in time')), START_TIMEOUT_MS);
    try {
      const events = call(rpcOf(sandbox), { headers, signal: stream.signal })[Symbol.asyncIterator]();
      const first = await events.next();
      const started = first.done ? undefined : first.value.event?.event;
      if (started?.case !== 'start') throw new Error('the response does not begin with a start event');
      return new SandboxProcess(sandbox, started.value.pid, events, stream);
    } catch (error) {
      throw (error as { code?: unknown }).code === UNAUTHENTICATED ? tooOld(error) : error;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    }
  }

  private constructor(
    sandbox: Sandbox,
    pid: number,
    events: AsyncIterator<{ event?: ProcessEvent }>,
    stream: AbortController,
  ) {
    this.sandbox = sandbox;
    this.pid = pid;
    this.events = events;
    this.stream = stream;
  }

  /** Rejects if the stream ends without an exit. */
  async read(output: Output): Promise<Exit> {
    const left = this.stream.signal;
    for (;;) {
      const { done, value } = await this.events.next();
      if (done) throw new Error('its stream ended');
      const event = value.event?.event;
      if (event?.case === 'end') return exitOf(event.value);
      if (event?.case !== 'data') continue;
      const { output: data } = event.value;
      if (data.case === 'stdout') await output.stdout(bytesOf(data.value), left);
      if (data.case === 'stderr') output.stderr(bytesOf(data.value));
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    const input = { input: { case: 'stdin', value: bytes } } as const;
    await rpcOf(this.sandbox).sendInput({ process: this.selector, input }, { signal: this.stream.signal });
  }

  async closeInput(): Promise<void> {
    await rpcOf(this.sandbox).closeStdin({ process: this.selector }, { signal: this.stream.signal });
  }

  /** Runs `kill`, because a signal sent by the sandbox would cut off the rest of the output. */
  async terminate(): Promise<void> {
    await this.sandbox.commands.run(`kill -TERM ${this.pid}`, { signal: this.stream.signal });
  }

  leave(): void {
    this.stream.abort();
  }

  private get selector() {
    return { selector: { case: 'pid', value: this.pid } } as const;
  }
}

function rpcOf({ commands }: Sandbox): Rpc {
  // biome-ignore lint/complexity/useLiteralKeys: the SDK keeps it for its own classes.
  const rpc: Rpc | undefined = commands['rpc'];
  if (rpc !== undefined) return rpc;
  throw new SwitchboardError(
    'invalid_config',
    'This version of the package e2b is not supported: run `npm install e2b@2.51.0` where Switchboard is installed.',
  );
}

/** Sandboxes before version 0.4 need a user in each request. */
function tooOld(cause: unknown): SwitchboardError {
  return new SwitchboardError(
    'invalid_config',
    'The E2B template is too old for Switchboard: rebuild it with the current E2B tools.',
    { cause },
  );
}

function bytesOf(value: Uint8Array): Buffer {
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

/** Go's names of the signals. */
const signalsByText: Record<string, string> = {
  hangup: 'SIGHUP',
  interrupt: 'SIGINT',
  quit: 'SIGQUIT',
  'illegal instruction': 'SIGILL',
  'trace/breakpoint trap': 'SIGTRAP',
  aborted: 'SIGABRT',
  'bus error': 'SIGBUS',
  'floating point exception': 'SIGFPE',
  killed: 'SIGKILL',
  'user defined signal 1': 'SIGUSR1',
  'segmentation fault': 'SIGSEGV',
  'user defined signal 2': 'SIGUSR2',
  'broken pipe': 'SIGPIPE',
  'alarm clock': 'SIGALRM',
  terminated: 'SIGTERM',
};

/** The status is `exit status 3`, `signal: killed` or `signal: aborted (core dumped)`. */
function exitOf({ exitCode, status }: Ended): Exit {
  const text = /^signal: (.+?)(?: \(core dumped\))?$/.exec(status)?.[1];
  const signal = text && (signalsByText[text] ?? text);
  return { code: signal ? undefined : exitCode, signal, reason: undefined, isLost: false };
}
