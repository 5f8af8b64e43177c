import type { ServerResponse } from 'node:http';
import { openEventStream, writeEvent, writeKeepAlive } from '../../http/event-stream.ts';
import type { Chunks } from '../../protocol/jsonrpc.ts';
import { sseMessage, ssePrimer } from '../../protocol/sse.ts';
import { allowsPrimer, type ProtocolVersion } from '../../protocol/versions.ts';
import type { ClientStream } from './caller.ts';
import { eventId, parseEventId, Replay } from './replay.ts';
import type { ReplayBudget } from './replay-budget.ts';

const RETRY_MS = 1_000;
/** The stream that belongs to no request: the one that a client opens with GET. */
const STANDING = 0;

interface OpenStream {
  /** The connection that carries it; undefined while the client is away. */
  response: ServerResponse | undefined;
  sequence: number;
}

/**
 * The event streams of one session: the standing one, and one for each request that is answered by a stream. A
 * stream outlives its connection: events are kept, and the client can go on from the last one that it saw.
 */
export class SessionStreams implements ClientStream {
  private readonly version: ProtocolVersion;
  private readonly replay: Replay;
  private readonly standing: OpenStream;
  /** How far the standing stream has reached the client. */
  private delivered: number;
  /** How far it had reached the client at a time: so much is dropped when that is long ago. */
  private settled: { sequence: number; at: number };
  private ofRequests: Map<number, OpenStream> | undefined;
  private nextStream = STANDING + 1;

  /** `first` is behind the number of every event of the standing stream that the client may have seen before. */
  constructor(version: ProtocolVersion, budget: ReplayBudget, first = 0) {
    this.version = version;
    this.standing = { response: undefined, sequence: first };
    this.delivered = first;
    this.settled = { sequence: first, at: 0 };
    this.replay = new Replay(budget);
  }

  get isOpen(): boolean {
    return this.standing.response !== undefined;
  }

  send(message: Chunks): void {
    if (this.emit(STANDING, this.standing, message)) this.delivered = this.standing.sequence;
  }

  keepAlive(): void {
    this.replay.dropFinished();
    const { response } = this.standing;
    if (response === undefined) return;
    if (response.writableLength === 0) this.dropDelivered();
    writeKeepAlive(response);
  }

  close(): void {
    this.standing.response?.end();
    for (const { response } of this.ofRequests?.values() ?? []) response?.end();
    this.ofRequests = undefined;
    this.replay.close();
  }

  /** The client opens the standing stream. What came while nobody listened comes first. A newer one replaces it. */
  listen(response: ServerResponse): void {
    const { standing } = this;
    standing.response?.end();
    this.carry(standing, response);
    this.prime(STANDING, standing);
    for (const { sequence, message } of this.replay.after(STANDING, this.delivered)) {
      writeEvent(response, sseMessage(message, eventId(STANDING, sequence)));
    }
    this.delivered = standing.sequence;
  }

  /** The client comes back for what it missed. False when the event id is none of this session's. */
  resume(response: ServerResponse, lastEventId: string): boolean {
    const last = parseEventId(lastEventId);
    if (last === undefined || last.stream >= this.nextStream) return false;
    const stream = last.stream === STANDING ? this.standing : this.ofRequests?.get(last.stream);
    stream?.response?.end();
    if (stream === undefined) openEventStream(response);
    else this.carry(stream, response);
    for (const { sequence, message } of this.replay.after(last.stream, last.sequence)) {
      writeEvent(response, sseMessage(message, eventId(last.stream, sequence)));
    }
    if (last.stream === STANDING) this.delivered = this.standing.sequence;
    // The answer was among what it missed: nothing comes after it.
    if (stream === undefined) {
      response.end();
      this.replay.finish(last.stream);
    }
    return true;
  }

  /** Opens a stream for the answer to one request. */
  openFor(response: ServerResponse): number {
    const number = this.nextStream++;
    const stream: OpenStream = { response: undefined, sequence: 0 };
    this.ofRequests ??= new Map();
    this.ofRequests.set(number, stream);
    this.carry(stream, response);
    this.prime(number, stream);
    return number;
  }

  sendOn(number: number, message: Chunks): void {
    const stream = this.ofRequests?.get(number);
    if (stream !== undefined) this.emit(number, stream, message);
  }

  /** Where the client is away, what it has not had waits for it. */
  finish(number: number): void {
    const response = this.ofRequests?.get(number)?.response;
    this.ofRequests?.delete(number);
    if (response === undefined || response.destroyed) return;
    response.end();
    this.replay.finish(number);
  }

  /** Lets go of the connection; the client comes back after the time. Only clients that know this are asked to. */
  pause(number: number, retryMs: number): void {
    const stream = this.ofRequests?.get(number);
    if (stream?.response === undefined || !allowsPrimer(this.version)) return;
    writeEvent(stream.response, [ssePrimer(eventId(number, stream.sequence), retryMs)]);
    stream.response.end();
    stream.response = undefined;
  }

  keepAliveOn(number: number): void {
    const response = this.ofRequests?.get(number)?.response;
    if (response !== undefined) writeKeepAlive(response);
  }

  /** A standing stream may be open for days; a client that lost its connection comes back soon, or not at all. */
  private dropDelivered(): void {
    const now = performance.now();
    if (now - this.settled.at < this.replay.keptMs) return;
    if (this.settled.sequence > 0) this.replay.dropUpTo(STANDING, this.settled.sequence);
    this.settled = { sequence: this.delivered, at: now };
  }

  private emit(number: number, stream: OpenStream, message: Chunks): boolean {
    const sequence = ++stream.sequence;
    this.replay.add({ stream: number, sequence, message });
    return (
      stream.response !== undefined &&
      writeEvent(stream.response, sseMessage(message, eventId(number, sequence)))
    );
  }

  private carry(stream: OpenStream, response: ServerResponse): void {
    openEventStream(response);
    stream.response = response;
    response.on('close', () => {
      if (stream.response === response) stream.response = undefined;
    });
  }

  private prime(number: number, stream: OpenStream): void {
    if (!allowsPrimer(this.version) || stream.response === undefined) return;
    writeEvent(stream.response, [ssePrimer(eventId(number, stream.sequence), RETRY_MS)]);
  }
}
