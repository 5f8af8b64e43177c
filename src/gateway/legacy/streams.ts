import type { ServerResponse } from 'node:http';
import { openEventStream, writeEvent, writeKeepAlive } from '../../http/event-stream.ts';
import type { Chunks } from '../../protocol/jsonrpc.ts';
import { sseMessage, ssePrimer } from '../../protocol/sse.ts';
import { allowsPrimer, type ProtocolVersion } from '../../protocol/versions.ts';
import type { ClientStream } from './caller.ts';
import { eventId, parseEventId, Replay, type ReplayBudget } from './replay.ts';

const RETRY_MS = 1_000;
/** The stream that a client opens with GET. */
const STANDING = 0;

interface OpenStream {
  /** Undefined while the client is disconnected. */
  response: ServerResponse | undefined;
  sequence: number;
}

/**
 * The event streams of one session: the standing one, and one for each streamed response. A stream outlives its connection:
 * events are kept, and the client can resume after the last one that it received.
 */
export class SessionStreams implements ClientStream {
  private readonly version: ProtocolVersion;
  private readonly replay: Replay;
  private readonly standing: OpenStream;
  /** The last event of the standing stream that was sent. */
  private delivered: number;
  /** An earlier value of `delivered`: those events are dropped when `at` is long ago. */
  private settled: { sequence: number; at: number };
  private ofRequests: Map<number, OpenStream> | undefined;
  private nextStream = STANDING + 1;

  /** `first` exceeds the number of every event that the client received before a restart. */
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

  disconnect(): void {
    this.standing.response?.end();
    for (const { response } of this.ofRequests?.values() ?? []) response?.end();
  }

  close(): void {
    this.disconnect();
    this.ofRequests = undefined;
    this.replay.close();
  }

  /** Opens the standing stream, and replaces an older one. Missed events come first. */
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

  /** False if the event id is not from this session. */
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
    // The response was among the missed events: nothing follows it.
    if (stream === undefined) {
      response.end();
      this.replay.finish(last.stream);
    }
    return true;
  }

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

  /** If the client is disconnected, missed events are kept for it. */
  finish(number: number): void {
    const response = this.ofRequests?.get(number)?.response;
    this.ofRequests?.delete(number);
    if (response === undefined || response.destroyed) return;
    response.end();
    this.replay.finish(number);
  }

  /** The client reconnects after `retryMs`. Older protocol versions do not support that. */
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

  /** A standing stream may be open for days; a client that lost its connection returns soon, or never. */
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
