import { randomInt } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Channel, Receiver, RequestKind } from './channel.ts';
import { LinePipe } from './line-pipe.ts';

/** How to reach a running hosted server: its stdin and stdout, or its URL. */
export type Attachment = (
  | { kind: 'stdio'; input: Writable; output: Readable }
  | { kind: 'url'; url: string }
) & {
  /** Resolves when the instance ends. */
  ended: Promise<SwitchboardError>;
};

export interface Hosts {
  /** Resolves when the server runs; rejects if it will not within seconds. */
  attach(id: string): Promise<Attachment>;
}

/**
 * A hosted server, over the streams of its instance. The supervisor owns the instance and its restarts; docs/states.md
 * shows how its states relate to those of a connection. It gets one request at a time: the next is written when the
 * last one has a response or is abandoned. Closing the channel leaves the instance running.
 */
export class HostedChannel implements Channel {
  readonly isStreamable = false;
  /** The instance may still work on requests of the channel before this one. */
  readonly firstRequest = randomInt(2 ** 32, 2 ** 47);
  private readonly receiver: Receiver;
  private readonly pipe: LinePipe;
  private current: number | undefined;
  /** In the order of arrival. */
  private readonly queued = new Map<number, Chunks>();
  private isClosed = false;

  constructor(
    { input, output }: Extract<Attachment, { kind: 'stdio' }>,
    maxBytes: number,
    receiver: Receiver,
  ) {
    this.receiver = receiver;
    this.pipe = new LinePipe(input, output, maxBytes, {
      onMessage: (chunks) => receiver.onMessage(chunks),
      onRequestError: (request, ...why) => {
        receiver.onRequestError(request, ...why);
        this.settle(request);
      },
      log: (line) => receiver.log(line),
    });
  }

  send(message: Chunks, request?: number, _lines?: string, kind?: RequestKind): void {
    if (this.isClosed) return;
    if (request === undefined || kind === 'standing') {
      this.pipe.send(message, request);
    } else if (this.current === undefined) {
      this.current = request;
      this.pipe.send(message, request);
    } else {
      this.queued.set(request, message);
    }
  }

  settle(request: number): void {
    this.queued.delete(request);
    if (this.current !== request) return;
    this.current = undefined;
    const [next] = this.queued;
    if (next === undefined) return;
    this.queued.delete(next[0]);
    this.send(next[1], next[0]);
  }

  abandon(request: number): void {
    this.settle(request);
  }

  ready(): void {}

  async close(): Promise<void> {
    this.isClosed = true;
    this.queued.clear();
    this.pipe.detach();
  }

  serverEnded(error: SwitchboardError): void {
    if (this.isClosed) return;
    this.pipe.end();
    void this.close();
    this.receiver.onClosed(error);
  }
}
