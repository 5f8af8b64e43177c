import type { Channel } from '../../channels/channel.ts';
import type { SwitchboardError } from '../../errors.ts';
import { bytesAt, idBytes, type Message, readMessage } from '../../protocol/envelope.ts';
import { notificationMessage } from '../../protocol/jsonrpc.ts';
import { membersAt } from '../../protocol/members.ts';
import { SUBSCRIPTION_KEY, subscribedAs } from '../../protocol/self-description.ts';
import { splice } from '../../protocol/splice.ts';
import { ModernRequest } from './modern-request.ts';

export const LISTEN = 'subscriptions/listen';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** The notifications of lists, by what is acknowledged. */
const listNotifications: Record<string, string> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
};

/** A subscription of the client. Once it was acknowledged, it goes on until the client ends it. */
export class ListenRequest extends ModernRequest {
  /** The client knows that it is told of changes. */
  private isOpen = false;
  /** What was sent last was acknowledged, and not only to say that there is nothing to tell of. */
  private isHeard = false;

  override get isAwaited(): boolean {
    return !this.isOpen;
  }

  override relay(notification: Message): Buffer[] {
    if (notification.method !== ACKNOWLEDGED) return [this.subscribed(notification)];
    const honoured = honouredBy(notification);
    this.isHeard = honoured.length > 0;
    // A client that knows already need not know that it was asked for again, only what it may have missed.
    if (this.isOpen) return this.listsChanged(honoured);
    this.isOpen = true;
    return [this.subscribed(notification)];
  }

  override relayAnswer(answer: Message): Buffer {
    const { bytes, result } = answer;
    if (result === undefined) return super.relayAnswer(answer);
    const meta = membersAt(bytes, result.start, metaName).get('_meta');
    const subscription = meta && membersAt(bytes, meta.value.start, subscriptionName).get(SUBSCRIPTION_KEY);
    if (subscription === undefined) return super.relayAnswer(answer);
    const id = idBytes(this.message);
    return splice(bytes, [
      { ...answer.idSpan!, bytes: id },
      { ...subscription.value, bytes: id },
    ]);
  }

  /** A Switchboard that shuts down ends all subscriptions. */
  override outlastsAnswer({ kind }: Message): boolean {
    return this.isHeard && kind === 'result';
  }

  override outlastsFailure(error: SwitchboardError, sent: boolean): boolean {
    // With a status, somebody was there and refused it.
    return this.isOpen ? error.data.status === undefined : super.outlastsFailure(error, sent);
  }

  protected override transmit(channel: Channel, bytes: Buffer, number: number, lines: string): void {
    this.isHeard = false;
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
