import { type Duplex, Readable, Writable } from 'node:stream';
import { LINES_PER_TURN } from '../../../channels/line-pipe.ts';
import { logLines } from '../../log.ts';
import type { Engine, Hijacked } from './engine.ts';

/** They close with the container or the engine. */
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

  /** Reads the rest of the output after an exit, even without a consumer. */
  drain(): void {
    this.hasBackpressure = false;
    for (const socket of this.sockets) socket.resume();
  }

  destroy(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Stops reading while stdout has no consumer, so that the container blocks. */
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

/** The end of stdin is not passed on, because another Switchboard may adopt the container. */
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

const HEADER_BYTES = 8;
const STDERR = 2;

interface FrameHandlers {
  /** A frame may come in several parts. */
  stdout(bytes: Buffer): void;
  stderr(bytes: Buffer): void;
}

/**
 * Demultiplexes the output of a container. Each frame has a header of eight bytes: the first is the stream, the last four
 * are the length. Bytes are passed on as they arrive, without copies.
 */
export class FrameSplitter {
  private readonly handlers: FrameHandlers;
  private readonly header = Buffer.alloc(HEADER_BYTES);
  private headerBytes = 0;
  private left = 0;

  constructor(handlers: FrameHandlers) {
    this.handlers = handlers;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) rest = this.left === 0 ? this.readHeader(rest) : this.readContent(rest);
  }

  private readHeader(bytes: Buffer): Buffer {
    const taken = bytes.copy(this.header, this.headerBytes);
    this.headerBytes += taken;
    if (this.headerBytes === HEADER_BYTES) {
      this.headerBytes = 0;
      this.left = this.header.readUInt32BE(4);
    }
    return bytes.subarray(taken);
  }

  private readContent(bytes: Buffer): Buffer {
    const content = bytes.subarray(0, this.left);
    this.left -= content.length;
    if (this.header[0] === STDERR) this.handlers.stderr(content);
    else this.handlers.stdout(content);
    return bytes.subarray(content.length);
  }
}
