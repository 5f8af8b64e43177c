import { randomInt } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Channel, Receiver } from './channel.ts';
import { LinePipe } from './line-pipe.ts';

/** What a hosted server is spoken with through: its own stdin and stdout, or the address that it serves at. */
export type Attachment = (
  | { kind: 'stdio'; input: Writable; output: Readable }
  | { kind: 'url'; url: string }
) & {
  /** Settles when what runs it ends. */
  ended: Promise<SwitchboardError>;
};

/** Whoever runs hosted servers. */
export interface Hosts {
  /** Settles when the server runs; fails where it does not, and will not within seconds. */
  attach(id: string): Promise<Attachment>;
}

interface Ending {
  /** Undefined where nobody wants to know any more. */
  tell: ((error: SwitchboardError) => void) | undefined;
}

/** An instance may outlive many channels: it must not keep them until it ends. */
function tellOf(ended: Promise<SwitchboardError>, ending: Ending): void {
  void ended.then((error) => ending.tell?.(error));
}

/**
 * A hosted server, by the streams of what runs it. It gets one request at a time, whoever asks: the next one is written when
 * the last one is answered, or nobody waits for that answer any more. It goes on running when the channel is closed.
 */
export class HostedChannel implements Channel {
  readonly isStreamable = false;
  /** It may still work on what was asked by whoever was attached before. */
  readonly firstRequest = randomInt(2 ** 32, 2 ** 47);
  private readonly pipe: LinePipe;
  private current: number | undefined;
  /** In the order in which they came. */
  private readonly waiting = new Map<number, Chunks>();
  private readonly ending: Ending;
  private isOver = false;

  constructor(
    { input, output, ended }: Extract<Attachment, { kind: 'stdio' }>,
    maxBytes: number,
    receiver: Receiver,
  ) {
    this.pipe = new LinePipe(input, output, maxBytes, {
      onMessage: (chunks) => receiver.onMessage(chunks),
      onRequestError: (request, ...why) => {
        receiver.onRequestError(request, ...why);
        this.settle(request);
      },
      log: (line) => receiver.log(line),
    });
    this.ending = {
      tell: (error) => {
        this.pipe.end();
        this.leave();
        receiver.onClosed(error);
      },
    };
    tellOf(ended, this.ending);
  }

  send(message: Chunks, request?: number): void {
    if (this.isOver) return;
    if (request === undefined) {
      this.pipe.send(message);
    } else if (this.current === undefined) {
      this.current = request;
      this.pipe.send(message, request);
    } else {
      this.waiting.set(request, message);
    }
  }

  sendStanding(message: Chunks, request: number): void {
    if (!this.isOver) this.pipe.send(message, request);
  }

  abandon(request: number): void {
    this.settle(request);
  }

  ready(): void {}

  async close(): Promise<void> {
    this.leave();
  }

  settle(request: number): void {
    this.waiting.delete(request);
    if (this.current !== request) return;
    this.current = undefined;
    const [next] = this.waiting;
    if (next === undefined) return;
    this.waiting.delete(next[0]);
    this.send(next[1], next[0]);
  }

  private leave(): void {
    this.isOver = true;
    this.ending.tell = undefined;
    this.waiting.clear();
    this.pipe.leave();
  }
}
