import type { Channel } from '../../channels/channel.ts';
import type { SwitchboardError } from '../../errors.ts';
import { notificationMessage } from '../../protocol/jsonrpc.ts';
import { membersAt } from '../../protocol/members.ts';
import { bytesAt, idBytes, type Message } from '../../protocol/message.ts';
import { readMessage } from '../../protocol/message-reader.ts';
import { stringAt } from '../../protocol/modern-result.ts';
import { nameKeyOf, requestLines } from '../../protocol/request-lines.ts';
import { SUBSCRIPTION_KEY, subscribedAs } from '../../protocol/self-description.ts';
import { splice } from '../../protocol/splice.ts';
import { modernVersion } from '../../protocol/versions.ts';

export class ModernRequest {
  readonly message: Message;
  /** Undefined while it is queued. */
  number: number | undefined;
  private channel: Channel | undefined;
  private wasSentAgain = false;

  constructor(message: Message) {
    this.message = message;
  }

  get isAwaited(): boolean {
    return true;
  }

  send(channel: Channel, number: number): void {
    this.channel = channel;
    this.number = number;
    // Replaces the id: the channel matches rejections by it, and the client may reuse its ids.
    const id = { ...this.message.idSpan!, bytes: Buffer.from(String(number)) };
    this.transmit(channel, splice(this.message.bytes, [id]), number, this.lines());
  }

  relay(notification: Message): Buffer[] {
    return [notification.bytes];
  }

  relayResponse({ bytes, idSpan }: Message): Buffer {
    return splice(bytes, [{ ...idSpan!, bytes: idBytes(this.message) }]);
  }

  /** Whether to send it again despite this response. */
  outlastsResponse(_response: Message): boolean {
    return false;
  }

  /** Whether to send it again after this failure: once, if it certainly did not arrive. */
  outlastsFailure(_error: SwitchboardError, sent: boolean): boolean {
    if (sent || this.wasSentAgain) return false;
    this.wasSentAgain = true;
    return true;
  }

  settle(): void {
    if (this.number !== undefined) this.channel?.settle(this.number);
    this.number = undefined;
  }

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
    // Headers with our version would contradict the message, and hide the error that lists the versions.
    if (version !== modernVersion) return '';
    const key = nameKeyOf(method);
    return requestLines(method, key && this.message[key]?.value);
  }
}

export const LISTEN = 'subscriptions/listen';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** The notifications of changed lists, by the key in the acknowledgement. */
const listNotifications: Record<string, string> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
};

/** A subscriptions/listen request. Once acknowledged, it lasts until the client ends it. */
export class ListenRequest extends ModernRequest {
  private isOpen = false;
  /** Whether the last request was acknowledged, with at least one kind of notification. */
  private isHonoured = false;

  override get isAwaited(): boolean {
    return !this.isOpen;
  }

  override relay(notification: Message): Buffer[] {
    if (notification.method !== ACKNOWLEDGED) return [this.subscribed(notification)];
    const honoured = honouredBy(notification);
    this.isHonoured = honoured.length > 0;
    // A second acknowledgement is replaced by the changes that the client may have missed.
    if (this.isOpen) return this.listsChanged(honoured);
    this.isOpen = true;
    return [this.subscribed(notification)];
  }

  override relayResponse(response: Message): Buffer {
    const { bytes, result } = response;
    if (result === undefined) return super.relayResponse(response);
    const meta = membersAt(bytes, result.start, metaName).get('_meta');
    const subscription = meta && membersAt(bytes, meta.value.start, subscriptionName).get(SUBSCRIPTION_KEY);
    if (subscription === undefined) return super.relayResponse(response);
    const id = idBytes(this.message);
    return splice(bytes, [
      { ...response.idSpan!, bytes: id },
      { ...subscription.value, bytes: id },
    ]);
  }

  /** A stopping Switchboard ends all subscriptions. */
  override outlastsResponse({ kind }: Message): boolean {
    return this.isHonoured && kind === 'result';
  }

  override outlastsFailure(error: SwitchboardError, sent: boolean): boolean {
    // An error with an HTTP status is a rejection.
    return this.isOpen ? error.data.status === undefined : super.outlastsFailure(error, sent);
  }

  protected override transmit(channel: Channel, bytes: Buffer, number: number, lines: string): void {
    this.isHonoured = false;
    channel.send([bytes], number, lines, 'standing');
  }

  private listsChanged(honoured: string[]): Buffer[] {
    return honoured
      .flatMap((key) => listNotifications[key] ?? [])
      .map((method) => this.subscribed(readMessage(notificationMessage(method, {}))));
  }

  private subscribed(notification: Message): Buffer {
    return splice(notification.bytes, subscribedAs(notification, idBytes(this.message)));
  }
}

const metaName: ReadonlySet<string> = new Set(['_meta']);
const subscriptionName: ReadonlySet<string> = new Set([SUBSCRIPTION_KEY]);

function honouredBy({ bytes, params }: Message): string[] {
  const { notifications = {} } = (
    params === undefined ? {} : JSON.parse(bytesAt(bytes, params).toString())
  ) as {
    notifications?: object;
  };
  return Object.keys(notifications);
}
