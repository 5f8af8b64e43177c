import type { Duplex } from 'node:stream';
import { Readable, Writable } from 'node:stream';
import { join } from '../../../protocol/jsonrpc.ts';
import { LineSplitter } from '../../../protocol/lines.ts';
import type { Engine, Hijacked } from './engine.ts';
import { FrameSplitter } from './frames.ts';

/** Of a longer line nothing is told: secrets are masked later, and the half of one would not be known. */
const MAX_LOG_LINE = 32 * 1024;

/** The connection to what a container reads and writes. It ends with the container, or with the engine. */
export class Attached {
  readonly stdio: { input: Writable; output: Readable } | undefined;
  /** Settles when there is nothing more to read. */
  readonly closed: Promise<void>;
  private readonly socket: Duplex;
  private isHeldBack = true;
  private isOver = false;

  private constructor({ socket, head }: Hijacked, hasStdio: boolean, log: (line: string) => void) {
    this.socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    const output = new Readable({ read: () => void socket.resume() });
    const stdout = linesTo(log);
    const stderr = linesTo(log);
    const frames = new FrameSplitter({
      stdout: hasStdio ? (bytes) => this.forward(output, bytes) : (bytes) => stdout.push(bytes),
      stderr: (bytes) => stderr.push(bytes),
    });
    this.stdio = hasStdio ? { input: this.makeInput(), output } : undefined;
    socket.on('data', (chunk: Buffer) => frames.push(chunk));
    // It is followed by `close`, and why it broke is found out elsewhere.
    socket.on('error', () => {});
    socket.on('close', () => {
      stdout.end();
      stderr.end();
      output.push(null);
      this.stdio?.input.destroy();
      this.isOver = true;
      resolve();
    });
    if (head.length > 0) frames.push(head);
  }

  /** Whatever it writes from now on is told; before it is started, that is all. */
  static async to(
    engine: Engine,
    id: string,
    hasStdio: boolean,
    log: (line: string) => void,
  ): Promise<Attached> {
    const query = { stream: '1', stdout: '1', stderr: '1', ...(hasStdio ? { stdin: '1' } : {}) };
    return new Attached(await engine.hijack(`/containers/${id}/attach`, { query }), hasStdio, log);
  }

  get isClosed(): boolean {
    return this.isOver;
  }

  /** The container has ended: what it left, which is not much, is read also where nobody asks for it. */
  drain(): void {
    this.isHeldBack = false;
    this.socket.resume();
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Where nobody reads it, nothing more is taken from the container, which then has to wait. */
  private forward(output: Readable, bytes: Buffer): void {
    if (!output.push(bytes) && this.isHeldBack) this.socket.pause();
  }

  /** Its end is not told to the container: whoever takes it over has to be able to speak with it too. */
  private makeInput(): Writable {
    const { socket } = this;
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
}

function linesTo(log: (line: string) => void): LineSplitter {
  return new LineSplitter(MAX_LOG_LINE, {
    line: (chunks) => log(join(chunks).toString()),
    tooLong: () => log(`a line over ${MAX_LOG_LINE} bytes is skipped`),
  });
}
