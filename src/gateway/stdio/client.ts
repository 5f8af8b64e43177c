import type { Receiver } from '../../channels/channel.ts';
import { HttpChannel } from '../../channels/http.ts';
import { asSwitchboardError, type SwitchboardError } from '../../errors.ts';
import { type Chunks, errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { idBytes, type Message } from '../../protocol/message.ts';
import { withoutLineBreaks } from '../../protocol/sse.ts';
import type { Era } from '../../protocol/versions.ts';

/** The limit of a message in either direction. */
export const MAX_BYTES = 64 * 1024 * 1024;

/** The running Switchboard that all messages go to. */
export interface Switchboard {
  endpoint: string;
  /** Gives access; `vet` checks each connection before the headers are sent on it. */
  readonly pass: { headers: Record<string, string>; vet?: () => Promise<void> };
  /** Starts it if it does not run. */
  ensureRunning(): Promise<void>;
  /** For the user; the client does not see it. */
  log(line: string): void;
}

/** Sends one message to the client, as a line. */
export function toClient(chunks: Chunks): void {
  process.stdout.write(Buffer.concat([...chunks.map(withoutLineBreaks), Buffer.from('\n')]));
}

/** Responds to a request, or to a message whose id is unknown, with an error. */
export function reject(request: Message | undefined, error: SwitchboardError, era?: Era): void {
  toClient([errorMessage(request && idBytes(request), toRpcError(error, era))]);
}

/** The messages of one era that the client sends, on their way to Switchboard over HTTP. */
export abstract class BridgedEra implements Receiver {
  protected readonly switchboard: Switchboard;
  protected channel: HttpChannel;
  protected isClosed = false;
  private readonly headers: Record<string, string> | undefined;
  private whenSettled: (() => void) | undefined;

  /** `headers` of its own belong to a client that Switchboard knows by name. */
  constructor(switchboard: Switchboard, headers?: Record<string, string>) {
    this.switchboard = switchboard;
    this.headers = headers;
    this.channel = this.open();
  }

  abstract receive(message: Message): void;
  abstract onMessage(chunks: Chunks, request?: number): void;
  abstract onRequestError(request: number, error: SwitchboardError, sent: boolean): void;
  /** Whether the client waits for a response. */
  protected abstract readonly isAwaited: boolean;
  /** Responds with an error to every request that the client waits for. */
  abstract failAll(error: SwitchboardError): void;
  protected abstract onReopened(): void;
  /** Responds with an error to every request that was not sent. */
  protected abstract failUnsent(error: SwitchboardError): void;

  onClosed(_error: SwitchboardError): void {}
  onRequestPaused(): void {}
  onStale(): void {}
  onMissed(): void {}

  log(line: string): void {
    this.switchboard.log(line);
  }

  /** Resolves when every request of the client has its response. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.whenSettled = resolve;
      this.checkSettled();
    });
  }

  close(): Promise<void> {
    this.isClosed = true;
    return this.channel.close();
  }

  protected checkSettled(): void {
    if (!this.isAwaited) this.whenSettled?.();
  }

  /** Opens a new channel, if need be to a new Switchboard. */
  protected reopen(): void {
    const reopened = async () => {
      await this.switchboard.ensureRunning();
      if (this.isClosed) return;
      this.channel = this.open();
      this.onReopened();
    };
    reopened().catch((failure: unknown) => this.giveUp(asSwitchboardError(failure)));
  }

  protected giveUp(error: SwitchboardError): void {
    this.log(error.message);
    this.failUnsent(error);
    // As if the client had closed stdin: nothing more can be done for it.
    process.stdin.emit('end');
  }

  private open(): HttpChannel {
    const { endpoint: url, pass } = this.switchboard;
    const headers = { ...this.headers, ...pass.headers };
    return new HttpChannel({ url, ...pass, headers, isNamed: this.headers !== undefined }, MAX_BYTES, this);
  }
}
