import { type Duplex, Readable, Writable } from 'node:stream';
import { LINES_PER_TURN } from '../../../channels/line-reader.ts';
import { logLines } from '../log-lines.ts';
import type { Engine, Hijacked } from './engine.ts';
import { type FrameHandlers, FrameSplitter } from './frames.ts';

/** What a container reads and writes. It ends with the container, or with the engine. */
export class ContainerStreams {
  readonly stdio: { input: Writable; output: Readable } | undefined;
  /** Settles when there is nothing more to read. */
  readonly closed: Promise<unknown>;
  /** Settles when something can be read no more. */
  readonly parted: Promise<unknown>;
  private readonly sockets: Duplex[];
  private isWhole = true;
  private isHeldBack = true;

  /** What it logs comes on a connection of its own: where nobody reads its stdout, it can still be heard. */
  private constructor(main: Hijacked, errors: Hijacked | undefined, log: (line: string) => void) {
    const connections = [main, ...(errors === undefined ? [] : [errors])];
    this.sockets = connections.map(({ socket }) => socket);
    const output = new Readable({ read: () => void main.socket.resume() });
    const [stdout, stderr] = [logLines(log), logLines(log)];
    const frames: FrameHandlers = {
      stdout: (bytes) => (errors === undefined ? stdout.push(bytes) : this.forward(output, bytes)),
      stderr: (bytes) => stderr.push(bytes),
    };
    if (errors !== undefined) this.stdio = { input: inputOf(main.socket), output };
    const told = () => stdout.breaks + stderr.breaks;
    const closings = connections.map((connection) => readFrames(connection, frames, told));
    this.parted = Promise.race(closings).then(() => {
      this.isWhole = false;
    });
    void closings[0]!.then(() => {
      output.push(null);
      this.stdio?.input.destroy();
    });
    this.closed = Promise.all(closings).then(() => {
      stdout.end();
      stderr.end();
    });
  }

  /** Whatever it writes from now on is told; before it is started, that is all. */
  static async attach(
    engine: Engine,
    id: string,
    hasStdio: boolean,
    log: (line: string) => void,
  ): Promise<ContainerStreams> {
    const attach = (...streams: string[]) =>
      engine.hijack(`/containers/${id}/attach`, {
        query: Object.fromEntries(['stream', ...streams].map((name) => [name, '1'])),
      });
    if (!hasStdio) return new ContainerStreams(await attach('stdout', 'stderr'), undefined, log);
    const errors = await attach('stderr');
    try {
      return new ContainerStreams(await attach('stdin', 'stdout'), errors, log);
    } catch (error) {
      errors.socket.destroy();
      throw error;
    }
  }

  get isBroken(): boolean {
    return !this.isWhole;
  }

  /** The container has ended: what it left, which is not much, is read also where nobody asks for it. */
  drain(): void {
    this.isHeldBack = false;
    for (const socket of this.sockets) socket.resume();
  }

  destroy(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Where nobody reads it, nothing more is taken from the container, which then has to wait. */
  private forward(output: Readable, bytes: Buffer): void {
    if (!output.push(bytes) && this.isHeldBack) this.sockets[0]!.pause();
  }
}

/** Settles when the connection is closed. After many log lines others get their turn, and the container has to wait. */
function readFrames({ socket, head }: Hijacked, handlers: FrameHandlers, told: () => number): Promise<void> {
  const frames = new FrameSplitter(handlers);
  // An error is followed by `close`, and why it broke is found out elsewhere.
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  let lines = 0;
  socket.on('data', (chunk: Buffer) => {
    const before = told();
    frames.push(chunk);
    lines += told() - before;
    if (lines < LINES_PER_TURN) return;
    lines = 0;
    socket.pause();
    setImmediate(() => socket.resume());
  });
  // What came along with the answer comes first.
  if (head.length > 0) frames.push(head);
  return closed;
}

/** Its end is not told to the container: whoever takes it over has to be able to speak with it too. */
function inputOf(socket: Duplex): Writable {
  const input = new Writable({
    write: (bytes: Buffer, _encoding, done) => void socket.write(bytes, () => done()),
    writev: (parts, done) => {
      socket.cork();
      for (const { chunk } of parts.slice(0, -1)) socket.write(chunk);
      socket.write(parts.at(-1)!.chunk, () => done());
      socket.uncork();
    },
  });
  // Nobody has to care whether it still reads: its end is told by itself.
  input.on('error', () => {});
  return input;
}
