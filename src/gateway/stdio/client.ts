import type { Receiver } from '../../channels/channel.ts';
import { HttpChannel } from '../../channels/http.ts';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import { type Chunks, errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { idBytes, type Message } from '../../protocol/message.ts';
import { withoutLineBreaks } from '../../protocol/sse.ts';
import type { Era } from '../../protocol/versions.ts';

export const MAX_BYTES = 64 * 1024 * 1024;

export interface RunningSwitchboard {
  endpoint: string;
  /** Authenticates; `vet` checks each connection before the headers are sent on it, if need be instead of its certificate. */
  readonly pass: {
    headers: Record<string, string>;
    vet?: () => Promise<void>;
    acceptsAnyCertificate?: boolean;
  };
  ensureRunning(): Promise<void>;
  /** Shown to the user, not to the client. */
  log(line: string): void;
}

export function toClient(chunks: Chunks): void {
  process.stdout.write(Buffer.concat([...chunks.map(withoutLineBreaks), Buffer.from('\n')]));
}

export function reject(request: Message | undefined, error: SwitchboardError, era?: Era): void {
  toClient([errorMessage(request && idBytes(request), toRpcError(explained(error), era))]);
}

/** The client shows it to somebody who has configured no headers, but this program. */
function explained(error: SwitchboardError): SwitchboardError {
  if (error.data.status !== 401) return error;
  return new SwitchboardError(
    'unauthorized',
    'This Switchboard requires a key: set SWITCHBOARD_KEY to a valid one in the environment of "switchboard stdio". "switchboard key add" makes one.',
  );
}

/** Forwards the client's messages of one era to Switchboard over HTTP. */
export abstract class BridgedEra implements Receiver {
  protected readonly switchboard: RunningSwitchboard;
  protected channel: HttpChannel;
  protected isClosed = false;
  private readonly headers: Record<string, string> | undefined;
  private whenSettled: (() => void) | undefined;

  /** `headers` identify a client that Switchboard knows by name. */
  constructor(switchboard: RunningSwitchboard, headers?: Record<string, string>) {
    this.switchboard = switchboard;
    this.headers = headers;
    this.channel = this.open();
  }

  abstract receive(message: Message): void;
  abstract onMessage(chunks: Chunks, request?: number): void;
  abstract onRequestError(request: number, error: SwitchboardError, sent: boolean): void;
  /** Whether a request has no response yet. */
  protected abstract readonly isAwaited: boolean;
  abstract failAll(error: SwitchboardError): void;
  protected abstract onReopened(): void;
  protected abstract failUnsent(error: SwitchboardError): void;

  onClosed(_error: SwitchboardError): void {}
  onRequestPaused(): void {}
  onStale(): void {}
  onMissed(): void {}

  log(line: string): void {
    this.switchboard.log(line);
  }

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

  /** Opens a new channel, and starts Switchboard if necessary. */
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
    // Ends like a closed stdin, because the bridge is useless without Switchboard.
    process.stdin.emit('end');
  }

  private open(): HttpChannel {
    const { endpoint: url, pass } = this.switchboard;
    const headers = { ...this.headers, ...pass.headers };
    return new HttpChannel({ url, ...pass, headers, isNamed: this.headers !== undefined }, MAX_BYTES, this);
  }
}
