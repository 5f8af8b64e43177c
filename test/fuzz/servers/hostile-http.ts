import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { cut } from '../generators/chunkings.ts';
import { isListMethod, listPage } from '../generators/lists.ts';
import { caseRandom } from '../generators/random.ts';
import { generateResponse } from '../generators/responses.ts';
import { type Mood, streamText } from '../generators/sse.ts';

interface Asked {
  id?: unknown;
  method?: string;
  params?: { protocolVersion?: string; cursor?: string; arguments?: { case?: number } };
}

export interface HostileTerms {
  seed: number;
  transport: 'http' | 'sse';
  mood: Mood;
  /** Whether it announces changes of its lists. */
  isChanging?: boolean;
  tell: ((what: string) => void) | undefined;
}

const everything =
  '{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{}}';

/** An HTTP server on raw sockets, where any byte can be wrong. The case number in a call decides its response. */
export class HostileHttp implements AsyncDisposable {
  /** The case whose lists it has; undefined: it has one tool. */
  listCase: number | undefined;
  private readonly terms: HostileTerms;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  /** Its notification stream; over the older transport, all of its output. */
  private stream: Socket | undefined;
  private asked = () => {};
  private pages = 0;

  private constructor(terms: HostileTerms) {
    this.terms = terms;
    this.server = createServer({ noDelay: true }, (socket) => this.accept(socket));
  }

  static async start(terms: HostileTerms): Promise<HostileHttp> {
    const started = new HostileHttp(terms);
    started.server.listen(0, '127.0.0.1');
    await once(started.server, 'listening');
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/mcp`;
  }

  /** Settles when the tools of the case have been listed; false if no client is connected. */
  async change(index: number): Promise<boolean> {
    const { stream } = this;
    if (stream === undefined || stream.destroyed) return false;
    this.listCase = index;
    this.pages = 0;
    const asked = Promise.withResolvers<void>();
    this.asked = asked.resolve;
    stream.once('close', asked.resolve);
    for (const kind of ['tools', 'resources', 'prompts']) {
      stream.write(`data: {"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}\n\n`);
    }
    await asked.promise;
    stream.off('close', asked.resolve);
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    let unread: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      unread = Buffer.concat([unread, chunk]);
      for (;;) {
        const end = unread.indexOf('\r\n\r\n');
        if (end === -1) return;
        const head = unread.toString('latin1', 0, end);
        const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
        if (unread.length < end + 4 + length) return;
        const body = unread.toString('utf8', end + 4, end + 4 + length);
        unread = unread.subarray(end + 4 + length);
        this.serve(socket, head.split(' ', 1)[0]!, body);
      }
    });
  }

  private serve(socket: Socket, method: string, body: string): void {
    if (method === 'GET' && this.terms.transport === 'sse') {
      this.stream?.destroy();
      this.stream = socket;
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n`,
      );
    } else if (method === 'GET' && this.terms.isChanging) {
      this.stream = socket;
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n:\n\n');
    } else if (method === 'GET') {
      socket.write('HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n');
    } else if (method === 'POST') {
      this.receive(socket, JSON.parse(body) as Asked);
    } else {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    }
  }

  private receive(socket: Socket, asked: Asked): void {
    const { id, method = '', params } = asked;
    const isOlder = this.terms.transport === 'sse';
    if (isOlder || id === undefined || method === '')
      socket.write('HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n');
    if (id === undefined || method === '') return;
    if (method === 'tools/call') {
      this.answerCall(socket, JSON.stringify(id), Number(params?.arguments?.case));
      return;
    }
    const { member, value } = this.answerTo(method, params);
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"${member}":${value}}`;
    if (isOlder) this.stream?.write(`data: ${text}\n\n`);
    else {
      const bytes = Buffer.from(text, 'latin1');
      const session = method === 'initialize' ? 'Mcp-Session-Id: s\r\n' : '';
      socket.write(
        `HTTP/1.1 200 OK\r\n${session}Content-Type: application/json\r\nContent-Length: ${bytes.length}\r\n\r\n`,
      );
      socket.write(bytes);
    }
  }

  private answerTo(method: string, params: Asked['params']): { member: string; value: string } {
    const { listCase } = this;
    if (method === 'initialize') {
      this.pages = 0;
      const isFull = listCase !== undefined || this.terms.isChanging;
      const capabilities = isFull ? everything : '{"tools":{}}';
      return {
        member: 'result',
        value: `{"protocolVersion":${JSON.stringify(params?.protocolVersion)},"capabilities":${capabilities},"serverInfo":{"name":"x","version":"1"}}`,
      };
    }
    if (method === 'server/discover') return { member: 'error', value: '{"code":-32601,"message":"no"}' };
    if (listCase !== undefined && isListMethod(method)) {
      const page = this.pages++;
      const random = caseRandom(this.terms.seed, listCase, 10 + page);
      const value = listPage(random, listCase, method, page);
      if (method === 'tools/list') this.asked();
      this.terms.tell?.(`← ${method} ${value.slice(0, 2_000)}`);
      return { member: 'result', value };
    }
    return {
      member: 'result',
      value: method === 'tools/list' ? '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' : '{}',
    };
  }

  private answerCall(socket: Socket, id: string, index: number): void {
    const { seed, mood, transport } = this.terms;
    const random = caseRandom(seed, index, 3);
    if (transport === 'sse') {
      // Several responses share the stream, so each is complete to keep the others intact.
      const bytes = streamText(random, index, id, mood);
      this.tell(bytes);
      const whole = mood === 'odd' && bytes[0] === 0xef ? bytes.subarray(3) : bytes;
      this.stream?.write(Buffer.concat([whole, Buffer.from('\n\n')]));
      return;
    }
    const { bytes, closes } = generateResponse(random, index, id, mood);
    this.tell(bytes);
    void this.writePieces(socket, cut(random, bytes), closes);
  }

  private tell(bytes: Buffer): void {
    this.terms.tell?.(`← ${JSON.stringify(bytes.toString('latin1').slice(0, 2_000))}`);
  }

  private async writePieces(socket: Socket, pieces: readonly Buffer[], closes: boolean): Promise<void> {
    for (const [number, piece] of pieces.entries()) {
      if (number > 0) await new Promise((resolve) => setImmediate(resolve));
      if (socket.destroyed) return;
      socket.write(piece);
    }
    if (closes) socket.end();
  }
}
