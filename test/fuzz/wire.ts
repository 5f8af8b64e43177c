import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface WireAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** False if the connection closed in the middle, or the stream is still open. */
  isWhole: boolean;
}

export interface Exchange {
  answers: WireAnswer[];
  isClosed: boolean;
  /** Bytes that are no HTTP response. */
  malformed: string | undefined;
}

interface Wanted {
  pieces: readonly Buffer[];
  /** One for each response; undefined: read until the connection closes. */
  isHead: readonly boolean[] | undefined;
  /** Does not wait for the end of an event stream. */
  isEndless: boolean;
  leaves: boolean;
}

/** One connection at a time, reopened when it closes. Sends bytes exactly as they are split. */
export class Wire {
  private readonly port: number;
  private socket: Socket | undefined;

  constructor(port: number) {
    this.port = port;
  }

  async exchange({ pieces, isHead, isEndless, leaves }: Wanted): Promise<Exchange> {
    this.socket ??= await this.open();
    const { socket } = this;
    const reader = new AnswerReader(isHead);
    let finish = () => {};
    const over = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let isClosed = false;
    const take = (chunk: Buffer) => {
      reader.take(chunk);
      const isStreaming = isEndless && reader.isStreaming;
      if (reader.isDone || reader.malformed !== undefined || isStreaming) {
        if (!reader.isDone || reader.closes) this.drop();
        finish();
      }
    };
    const close = () => {
      isClosed = true;
      reader.closed();
      if (this.socket === socket) this.socket = undefined;
      finish();
    };
    socket.on('data', take);
    socket.once('close', close);
    await this.write(socket, pieces, () => isClosed);
    if (leaves) this.drop();
    else if (isHead === undefined) socket.end();
    await over;
    socket.off('data', take);
    socket.off('close', close);
    // The rest of an open stream.
    if (!isClosed) reader.closed();
    return { answers: reader.answers, isClosed, malformed: reader.malformed };
  }

  drop(): void {
    this.socket?.destroy();
    this.socket = undefined;
  }

  private async open(): Promise<Socket> {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  }

  private async write(socket: Socket, pieces: readonly Buffer[], isOver: () => boolean): Promise<void> {
    for (const [number, piece] of pieces.entries()) {
      if (number > 0) await new Promise((resolve) => setImmediate(resolve));
      if (isOver() || socket.destroyed) return;
      socket.write(piece);
    }
  }
}

/** Parses responses strictly: anything that a careful client would reject is malformed. */
class AnswerReader {
  readonly answers: WireAnswer[] = [];
  malformed: string | undefined;
  /** Whether the server announced that it closes the connection. */
  closes = false;
  private readonly isHead: readonly boolean[] | undefined;
  private unread: Buffer = Buffer.alloc(0);
  private head: WireAnswer | undefined;
  private chunks: Buffer[] = [];

  constructor(isHead: readonly boolean[] | undefined) {
    this.isHead = isHead;
  }

  get isDone(): boolean {
    return this.isHead !== undefined && this.answers.length >= this.isHead.length && this.head === undefined;
  }

  /** Whether an event stream has started and delivered data. */
  get isStreaming(): boolean {
    return this.head?.headers['content-type']?.startsWith('text/event-stream') ?? false;
  }

  take(chunk: Buffer): void {
    this.unread = this.unread.length === 0 ? chunk : Buffer.concat([this.unread, chunk]);
    while (this.malformed === undefined && this.step());
    if (this.isDone && this.unread.length > 0) this.malformed ??= `more than was asked for: ${this.shown()}`;
  }

  closed(): void {
    const { head } = this;
    if (head === undefined) {
      if (this.unread.length > 0) this.malformed ??= `a cut off head: ${this.shown()}`;
      return;
    }
    const endsByClosing =
      head.headers['content-length'] === undefined && head.headers['transfer-encoding'] === undefined;
    this.answers.push({
      ...head,
      body: Buffer.concat([...this.chunks, this.unread]),
      isWhole: endsByClosing,
    });
    this.head = undefined;
  }

  /** True if there may be more to read. */
  private step(): boolean {
    if (this.head === undefined) return this.readHead();
    const { headers } = this.head;
    if (this.isHead?.[this.answers.length] || [204, 304].includes(this.head.status)) return this.finish(0);
    if (headers['transfer-encoding'] === 'chunked') return this.readChunk();
    const length = headers['content-length'];
    return length !== undefined && this.unread.length >= Number(length) && this.finish(Number(length));
  }

  private readHead(): boolean {
    const end = this.unread.indexOf('\r\n\r\n');
    if (end === -1 || this.isDone) return false;
    const [first = '', ...lines] = this.unread.toString('latin1', 0, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(first)?.[1]);
    if (Number.isNaN(status)) {
      this.malformed = `no status: ${this.shown()}`;
      return false;
    }
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+): ?([^\0\r\n]*)$/.exec(line) ?? [];
      if (name === undefined || headers[name.toLowerCase()] !== undefined) {
        this.malformed = `a header that is wrong or twice there: ${line}`;
        return false;
      }
      headers[name.toLowerCase()] = value!;
    }
    this.unread = this.unread.subarray(end + 4);
    if (status >= 200) this.head = { status, headers, body: Buffer.alloc(0), isWhole: true };
    if (headers.connection === 'close') this.closes = true;
    return true;
  }

  private readChunk(): boolean {
    const end = this.unread.indexOf('\r\n');
    if (end === -1) return false;
    const size = Number.parseInt(this.unread.toString('latin1', 0, end), 16);
    if (Number.isNaN(size)) {
      this.malformed = `no chunk: ${this.shown()}`;
      return false;
    }
    const next = end + 2 + size + 2;
    if (this.unread.length < next) return false;
    if (size === 0) return this.finish(0, next);
    this.chunks.push(this.unread.subarray(end + 2, end + 2 + size));
    this.unread = this.unread.subarray(next);
    return true;
  }

  private finish(length: number, taken = length): boolean {
    const body = Buffer.concat([...this.chunks, this.unread.subarray(0, length)]);
    this.answers.push({ ...this.head!, body });
    this.unread = this.unread.subarray(taken);
    this.head = undefined;
    this.chunks = [];
    return true;
  }

  private shown(): string {
    return JSON.stringify(this.unread.toString('latin1', 0, 200));
  }
}
