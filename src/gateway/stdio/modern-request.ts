import type { Channel } from '../../channels/channel.ts';
import type { SwitchboardError } from '../../errors.ts';
import { idBytes, type Message } from '../../protocol/envelope.ts';
import { stringAt } from '../../protocol/modern-result.ts';
import { nameKeyOf, requestLines } from '../../protocol/request-lines.ts';
import { splice } from '../../protocol/splice.ts';
import { modernVersion } from '../../protocol/versions.ts';

/** A request of the modern era that has no answer yet. */
export class ModernRequest {
  readonly message: Message;
  /** The number that it was sent under; undefined while it waits to be sent. */
  number: number | undefined;
  private channel: Channel | undefined;
  private wasSentAgain = false;

  constructor(message: Message) {
    this.message = message;
  }

  /** Whether the client waits for the answer. */
  get isAwaited(): boolean {
    return true;
  }

  send(channel: Channel, number: number): void {
    this.channel = channel;
    this.number = number;
    // In place of the id: the channel knows by it which refusals are answers, and the client may use its ids as it likes.
    const id = { ...this.message.idSpan!, bytes: Buffer.from(String(number)) };
    this.transmit(channel, splice(this.message.bytes, [id]), number, this.lines());
  }

  /** What came before the answer, as the client is told of it. */
  relay(notification: Message): Buffer[] {
    return [notification.bytes];
  }

  /** The answer under the id that the client gave. */
  relayAnswer({ bytes, idSpan }: Message): Buffer {
    return splice(bytes, [{ ...idSpan!, bytes: idBytes(this.message) }]);
  }

  /** Whether it is asked again although this came as the answer. */
  outlastsAnswer(_answer: Message): boolean {
    return false;
  }

  /** Whether it is asked again after this failure: once, where nobody can have seen it. */
  outlastsFailure(_error: SwitchboardError, sent: boolean): boolean {
    if (sent || this.wasSentAgain) return false;
    this.wasSentAgain = true;
    return true;
  }

  /** The answer to what was sent has come. */
  settle(): void {
    if (this.number !== undefined) this.channel?.settle(this.number);
    this.number = undefined;
  }

  /** Nobody wants the answer: closing the POST says so to whoever works on it. */
  abandon(): void {
    if (this.number !== undefined) this.channel?.abandon(this.number);
    this.number = undefined;
  }

  protected transmit(channel: Channel, bytes: Buffer, number: number, lines: string): void {
    channel.send([bytes], number, lines);
  }

  private lines(): string {
    const { bytes, method, claims } = this.message;
    const version = claims?.protocolVersion && stringAt(bytes, claims.protocolVersion.value);
    // Lines that name our version would contradict it, and the client would not hear which versions there are.
    if (version !== modernVersion) return '';
    const key = nameKeyOf(method);
    return requestLines(method, key && this.message[key]?.value);
  }
}
