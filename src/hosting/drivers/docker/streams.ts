import { type Duplex, Readable, Writable } from 'node:stream';
import { LINES_PER_TURN } from '../../../channels/line-pipe.ts';
import { logLines } from '../../log.ts';
import type { Engine, Hijacked } from './engine.ts';
import { type FrameHandlers, FrameSplitter } from './frames.ts';

/** The stdin, stdout and stderr of a container. They close with the container or the engine. */
export class ContainerStreams {
  readonly stdio: { input: Writable; output: Readable } | undefined;
  /** Resolves when all streams are closed. */
  readonly closed: Promise<unknown>;
  /** Resolves when the first stream is closed. */
  readonly broken: Promise<unknown>;
  private readonly sockets: Duplex[];
  private hasBroken = false;
  private hasBackpressure = true;

  /** stderr has its own connection, so that an unread stdout does not block it. */
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
    const lineCount = () => stdout.breaks + stderr.breaks;
    const closings = connections.map((connection) => readFrames(connection, frames, lineCount));
    this.broken = Promise.race(closings).then(() => {
      this.hasBroken = true;
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

  /** Receives output from now on. Attach before the start to miss nothing. */
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
    return this.hasBroken;
  }

  /** After an exit: reads the rest, even if nobody consumes it. */
  drain(): void {
    this.hasBackpressure = false;
    for (const socket of this.sockets) socket.resume();
  }

  destroy(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Stops reading while nobody consumes stdout, so the container blocks. */
  private forward(output: Readable, bytes: Buffer): void {
    if (!output.push(bytes) && this.hasBackpressure) this.sockets[0]!.pause();
  }
}

/** Resolves when the connection is closed. Yields to the event loop after many log lines. */
function readFrames(
  { socket, head }: Hijacked,
  handlers: FrameHandlers,
  lineCount: () => number,
): Promise<void> {
  const frames = new FrameSplitter(handlers);
  // `close` follows every error.
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  let lines = 0;
  socket.on('data', (chunk: Buffer) => {
    const before = lineCount();
    frames.push(chunk);
    lines += lineCount() - before;
    if (lines < LINES_PER_TURN) return;
    lines = 0;
    socket.pause();
    setImmediate(() => socket.resume());
  });
  if (head.length > 0) frames.push(head);
  return closed;
}

/** Its end is not passed on, because another Switchboard may adopt the container. */
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
  // The exit is reported elsewhere.
  input.on('error', () => {});
  return input;
}
