/** A minimal keep-alive HTTP/1.1 client with one exchange at a time, so that the load generator costs little. */
import { connect, type Socket } from 'node:net';

const READ_BUFFER_BYTES = 65_536;
const EDGE_BYTES = 256;
const LARGEST_HEAD_BYTES = 8_192;
const CONTENT_LENGTH = /^content-length: *(\d+)/im;
const CHUNKED = /^transfer-encoding: *chunked/im;

export interface Answer {
  status: number;
  head: string;
  bodyBytes: number;
  /** The first bytes of the body, or all of a short one. */
  start: string;
  /** The last bytes of the body. */
  end: string;
  /** The whole body, if requested. */
  body: string | undefined;
}

type State = 'idle' | 'head' | 'length' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailer';

export class HttpConnection {
  readonly #socket: Socket;
  #state: State = 'idle';
  #text = '';
  #remaining = 0;
  #failure: Error | undefined;
  #keepBody = false;
  #pieces: Buffer[] = [];
  #answer: Answer = emptyAnswer();
  #onHead: (answer: Answer) => void = () => {};
  #onAnswer: (answer: Answer) => void = () => {};
  #onFailure: (error: Error) => void = () => {};

  static open(port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const connection = new HttpConnection(port, () => {
        connection.#onFailure = () => {};
        resolve(connection);
      });
      connection.#onFailure = reject;
    });
  }

  private constructor(port: number, onConnect: () => void) {
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      onread: {
        buffer: Buffer.allocUnsafe(READ_BUFFER_BYTES),
        callback: (length, buffer) => {
          this.#receive(buffer as Buffer, length);
          return true;
        },
      },
    });
    this.#socket.setNoDelay(true);
    this.#socket.on('connect', onConnect);
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(new Error('the connection was closed by the other side')));
  }

  /** Sends a request. Exactly one callback is called, once, unless the connection is destroyed. */
  send(
    request: string,
    keepBody: boolean,
    onAnswer: (answer: Answer) => void,
    onFailure: (error: Error) => void,
  ): void {
    this.#state = 'head';
    this.#text = '';
    this.#keepBody = keepBody;
    this.#answer = emptyAnswer();
    this.#onAnswer = onAnswer;
    this.#onFailure = onFailure;
    const failure = this.#failure;
    if (failure !== undefined) queueMicrotask(() => onFailure(failure));
    else this.#socket.write(request, 'latin1');
  }

  exchange(request: string): Promise<Answer> {
    return new Promise((resolve, reject) => this.send(request, true, resolve, reject));
  }

  /** Sends a request with an endless response, and resolves with its head. The rest is ignored. */
  openStream(request: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.send(request, false, resolve, reject);
      this.#onHead = resolve;
    });
  }

  destroy(): void {
    this.#onFailure = () => {};
    this.#socket.destroy();
  }

  /** Keeps the first failure, which may come while no exchange is pending. */
  #fail(error: Error): void {
    this.#failure ??= error;
    this.#onFailure(this.#failure);
  }

  #receive(buffer: Buffer, length: number): void {
    let position = 0;
    while (position < length) {
      switch (this.#state) {
        case 'idle':
          // They would be read as the next response.
          this.#socket.destroy();
          this.#fail(
            new Error(`nobody asked for ${JSON.stringify(buffer.toString('latin1', position, length))}`),
          );
          return;
        case 'head':
          position = this.#receiveHead(buffer, position, length);
          break;
        case 'length':
        case 'chunk-data':
          position = this.#receiveBody(buffer, position, length);
          break;
        default:
          position = this.#receiveLine(buffer, position, length);
      }
    }
  }

  #receiveHead(buffer: Buffer, position: number, length: number): number {
    const before = this.#text.length;
    this.#text += buffer.toString('latin1', position, Math.min(length, position + LARGEST_HEAD_BYTES));
    const headEnd = this.#text.indexOf('\r\n\r\n');
    if (headEnd < 0) {
      if (this.#text.length > LARGEST_HEAD_BYTES) this.#fail(new Error('the head of an answer is too long'));
      return length;
    }
    const head = this.#text.slice(0, headEnd + 2);
    this.#text = '';
    this.#answer.head = head;
    this.#answer.status = Number(head.slice(9, 12));
    this.#remaining = Number(CONTENT_LENGTH.exec(head)?.[1] ?? 0);
    this.#onHead(this.#answer);
    if (CHUNKED.test(head)) this.#state = 'chunk-size';
    else if (this.#remaining > 0) this.#state = 'length';
    else this.#finish();
    return position + headEnd + 4 - before;
  }

  #receiveBody(buffer: Buffer, position: number, length: number): number {
    const end = Math.min(length, position + this.#remaining);
    this.#addToBody(buffer, position, end);
    this.#remaining -= end - position;
    if (this.#remaining === 0) {
      if (this.#state === 'length') this.#finish();
      else this.#state = 'chunk-end';
    }
    return end;
  }

  #receiveLine(buffer: Buffer, position: number, length: number): number {
    const newline = buffer.indexOf(10, position);
    if (newline < 0 || newline >= length) {
      this.#text += buffer.toString('latin1', position, length);
      return length;
    }
    const line = (this.#text + buffer.toString('latin1', position, newline)).trimEnd();
    this.#text = '';
    if (this.#state === 'chunk-end') {
      this.#state = 'chunk-size';
    } else if (this.#state === 'chunk-size') {
      this.#remaining = Number.parseInt(line, 16);
      this.#state = this.#remaining === 0 ? 'trailer' : 'chunk-data';
    } else if (line.length === 0) {
      this.#finish();
    }
    return newline + 1;
  }

  #addToBody(buffer: Buffer, from: number, to: number): void {
    const answer = this.#answer;
    const wanted = EDGE_BYTES - answer.start.length;
    if (wanted > 0) answer.start += buffer.toString('latin1', from, Math.min(to, from + wanted));
    answer.end = (answer.end + buffer.toString('latin1', Math.max(from, to - EDGE_BYTES), to)).slice(
      -EDGE_BYTES,
    );
    answer.bodyBytes += to - from;
    if (this.#keepBody) this.#pieces.push(Buffer.from(buffer.subarray(from, to)));
  }

  #finish(): void {
    const answer = this.#answer;
    if (this.#keepBody) answer.body = Buffer.concat(this.#pieces).toString('utf8');
    this.#pieces = [];
    this.#state = 'idle';
    this.#onFailure = () => {};
    this.#onAnswer(answer);
  }
}

export function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: *([^\\r]*)`, 'im').exec(head)?.[1];
}

function emptyAnswer(): Answer {
  return { status: 0, head: '', bodyBytes: 0, start: '', end: '', body: undefined };
}
