import type { OpenChannel } from '../channels/open.ts';
import type { ServerConfig } from '../config.ts';
import { type ErrorCode, SwitchboardError } from '../errors.ts';
import type { ConnectionEvents, ConnectionPurpose, ReplicaContext } from './connection-context.ts';
import { Connector } from './connector.ts';
import { Lifecycle } from './lifecycle.ts';
import { listsOfNotification } from './lists.ts';
import {
  checkSubscribable,
  type LiveUpstream,
  sendLogLevel,
  sendSubscribe,
  sendUnsubscribe,
} from './live-upstream.ts';
import type { Client } from './request.ts';
import { aboutServer, redacted } from './server-errors.ts';
import type { ConnectionSettings } from './settings.ts';
import { Slots } from './slots.ts';
import { Subscriptions } from './subscriptions.ts';
import { Upstream } from './upstream.ts';

/** What some errors mean for the next try. */
const happeningOf: { readonly [code in ErrorCode]?: 'unusable' | 'loops' } = {
  invalid_config: 'unusable',
  server_loop: 'loops',
};

/** A connection to a replica, or to one client's own instance of it: opened when needed, once, and again when lost. */
export class Connection {
  private readonly config: ServerConfig;
  private readonly connector: Connector;
  readonly owner: Client | undefined;
  private readonly settings: ConnectionSettings;
  private readonly context: ReplicaContext<Connection>;
  private readonly events: ConnectionEvents;
  private live: LiveUpstream | undefined;
  /** Those that take nothing new while their last calls are under way. */
  private readonly leaving = new Set<Upstream>();
  private readonly closing = new Set<Promise<void>>();
  private stopped = false;
  private logLevel: string | undefined;
  /** What is being opened just now. */
  opening: Promise<LiveUpstream> | undefined;
  /** How often it was opened, and how long that took the last time. */
  opens = 0;
  openedInMs = 0;
  readonly lifecycle: Lifecycle;
  readonly slots: Slots;
  readonly subscriptions = new Subscriptions();

  constructor(
    config: ServerConfig,
    settings: ConnectionSettings,
    context: ReplicaContext<Connection>,
    { owner, capabilities, known, slots }: ConnectionPurpose,
    events: ConnectionEvents,
  ) {
    this.config = config;
    this.settings = settings;
    this.owner = owner;
    this.context = context;
    this.events = events;
    this.connector = new Connector(config, settings, known, capabilities, {
      opened: (openChannel) => this.newUpstream(openChannel),
      end: (upstream) => this.end(upstream),
      isStopped: () => this.stopped,
      gone: () => Promise.all(this.closing),
      subscribedUris: () => this.subscriptions.uris(),
      missed: () => events.missed?.(),
      log: (line) => context.listener.log(line),
    });
    this.slots = slots ?? new Slots(config.concurrency, settings.queueLimit);
    this.lifecycle = new Lifecycle(settings.recovery, {
      changed: () => context.stateChanged(),
      due: () => {
        if (this.live !== undefined) events.recheck?.();
        else this.open().catch(() => {});
      },
    });
  }

  /** The live upstream, if there is one: the way of every call after the first. */
  get current(): LiveUpstream | undefined {
    return this.live;
  }

  /** Whether it was there before, and was lost. */
  get wasLost(): boolean {
    return this.lifecycle.condition.losses > 0;
  }

  /** Why nothing can be sent here now, nor after a start that calls wait for; undefined where it can. */
  get refusal(): SwitchboardError | undefined {
    return this.live === undefined ? this.lifecycle.refusal(this.config.name) : undefined;
  }

  /** Opens it, or gives what is open or opening. Fails at once while it waits for its next try. */
  open(): Promise<LiveUpstream> {
    if (this.live !== undefined) return Promise.resolve(this.live);
    if (this.opening !== undefined) return this.opening;
    const refusal = this.lifecycle.notYet(this.config.name);
    return refusal === undefined ? this.begin(false) : Promise.reject(refusal);
  }

  private begin(isHastened: boolean): Promise<LiveUpstream> {
    this.opening = this.start(isHastened).finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  /** What was in the way of it is gone: it is tried now, and not when its time has come. */
  retry(): void {
    if (this.stopped || this.live !== undefined || this.opening !== undefined) return;
    if (this.lifecycle.condition.state === 'failed') return;
    this.begin(true).catch(() => {});
  }

  /** Whether anybody would miss it. */
  get isBusy(): boolean {
    return (
      this.slots.used > 0 ||
      this.slots.queued > 0 ||
      this.subscriptions.uris().length > 0 ||
      this.leaving.size > 0
    );
  }

  /** Ends what is open, because it leads back to us. */
  refuse(why: SwitchboardError): void {
    const { live } = this;
    if (live === undefined) return;
    this.live = undefined;
    live.listening?.stop();
    this.subscriptions.clear();
    const reason = this.failure(why);
    this.context.listener.log(reason.message);
    this.end(live.upstream);
    this.lifecycle.apply({ kind: 'loops', reason });
  }

  /** Ends what is open; the next use opens it again. */
  rest(): void {
    const { live } = this;
    if (live === undefined) return;
    this.live = undefined;
    this.end(live.upstream);
    this.lifecycle.apply({ kind: 'rests' });
  }

  /** Takes nothing new. What is under way goes on until close(); those who wait for its start need not any longer. */
  retire(): void {
    this.lifecycle.apply({ kind: 'stops' });
    if (this.live !== undefined) return;
    this.stopped = true;
    if (this.connector.current !== undefined) this.end(this.connector.current);
  }

  /** Settles when everything that was ever opened here is gone. */
  async close(): Promise<void> {
    this.stopped = true;
    this.lifecycle.apply({ kind: 'stops' });
    const { opening } = this;
    const open = [this.live?.upstream, ...this.leaving, this.connector.current];
    this.live = undefined;
    this.leaving.clear();
    for (const upstream of open) if (upstream !== undefined) this.end(upstream);
    await opening?.catch(() => {});
    await Promise.all(this.closing);
  }

  /** Has the server tell of changes of a resource, for this client too. */
  async subscribe(uri: string, client: Client): Promise<void> {
    const live = await this.open();
    checkSubscribable(live);
    await this.subscriptions.add(uri, client, () => sendSubscribe(live, uri));
  }

  /** The server is told when nobody follows the resource any more. */
  async unsubscribe(uri: string, client: Client): Promise<void> {
    if (this.subscriptions.remove(uri, client)) await this.endSubscription(uri);
  }

  /** A client is gone, and follows nothing any more. */
  release(client: Client): void {
    for (const uri of this.subscriptions.removeClient(client)) {
      this.endSubscription(uri).catch((error: Error) => this.context.listener.log(error.message));
    }
  }

  /** Settles when the server knows, or cannot be told. */
  async setLogLevel(level: string | undefined): Promise<void> {
    if (level === undefined || level === this.logLevel) return;
    this.logLevel = level;
    await this.sendLogLevel();
  }

  private async endSubscription(uri: string): Promise<void> {
    if (this.live !== undefined) await sendUnsubscribe(this.live, uri);
  }

  private async start(isHastened: boolean): Promise<LiveUpstream> {
    const { lifecycle } = this;
    const startedAt = performance.now();
    const wasBroken = lifecycle.condition.failedConnects >= this.settings.recovery.breakerFailures;
    lifecycle.apply({ kind: 'starts', isHastened });
    try {
      const live = await this.connector.connect();
      if (this.stopped) {
        this.end(live.upstream);
        throw new SwitchboardError('server_unavailable', 'it was stopped');
      }
      if (live.upstream.isGone)
        throw new SwitchboardError('server_unavailable', 'it ended right after the handshake');
      this.live = live;
      this.opens++;
      this.openedInMs = performance.now() - startedAt;
      lifecycle.apply({ kind: 'connected' });
      void this.sendLogLevel();
      this.events.opened(live, wasBroken);
      this.context.listener.connected(this);
      return live;
    } catch (error) {
      const reason = this.failure(error);
      this.events.failed(reason, error);
      lifecycle.apply({ kind: happeningOf[reason.code] ?? 'connect failed', reason });
      throw reason;
    }
  }

  private newUpstream(openChannel: OpenChannel): Upstream {
    const upstream: Upstream = new Upstream(
      {
        notificationReceived: (message, call) => {
          const lists = listsOfNotification.get(message.method);
          if (lists === undefined)
            this.context.listener.notificationReceived(this, { upstream, message, call });
          else this.context.listsChanged(lists);
        },
        requestReceived: (message, call) =>
          this.context.listener.requestReceived(this, { upstream, message, call }),
        log: (line) => this.context.listener.log(line),
        missed: () => this.events.missed?.(),
        stale: (...why) => this.upstreamStale(upstream, ...why),
        closed: (error) => this.upstreamClosed(upstream, error),
        redacted: (error) => redacted(error, this.settings.redact),
      },
      openChannel,
    );
    return upstream;
  }

  private end(upstream: Upstream): void {
    const ended = upstream
      .close()
      .catch((error: Error) => this.context.listener.log(error.message))
      .finally(() => this.closing.delete(ended));
    this.closing.add(ended);
    this.context.listener.disconnected(this, upstream);
  }

  private async sendLogLevel(): Promise<void> {
    if (this.live === undefined || this.logLevel === undefined) return;
    await sendLogLevel(this.live, this.logLevel, this.settings.connectTimeoutMs).catch((error: Error) =>
      this.context.listener.log(error.message),
    );
  }

  /** Nothing new can be sent there; what is under way may still be answered. */
  private upstreamStale(upstream: Upstream, error: SwitchboardError, isThere: boolean): void {
    if (this.live?.upstream !== upstream) return;
    this.leaving.add(upstream);
    this.lose(error, isThere);
  }

  private upstreamClosed(upstream: Upstream, error: SwitchboardError): void {
    if (this.live?.upstream === upstream) this.lose(error, false);
    else if (!this.leaving.delete(upstream)) return;
    this.context.listener.disconnected(this, upstream);
  }

  private lose(error: SwitchboardError, isThere: boolean): void {
    const { live } = this;
    this.live = undefined;
    // The last that keeps a connection that broke.
    live?.listening?.stop();
    // Who follows what is for the next one to be told anew.
    this.subscriptions.clear();
    this.context.listener.log(error.message);
    this.lifecycle.apply({ kind: 'lost', reason: this.failure(error), isThere });
  }

  private failure(error: unknown): SwitchboardError {
    return redacted(aboutServer(error, this.config.name), this.settings.redact);
  }
}
