import type { OpenChannel } from '../channels/open.ts';
import type { ServerConfig } from '../config.ts';
import { type ErrorCode, SwitchboardError } from '../errors.ts';
import type { ConnectionEvents, ConnectionPurpose, ReplicaContext } from './connection-context.ts';
import { Connector, type LiveUpstream } from './connector.ts';
import { Lifecycle } from './lifecycle.ts';
import { listsOfNotification } from './lists.ts';
import { sendRequest } from './own-requests.ts';
import type { Client } from './request.ts';
import { connectError, redacted } from './server-errors.ts';
import type { ConnectionSettings } from './settings.ts';
import { Slots } from './slots.ts';
import { Subscriptions, sendUnsubscribe } from './subscriptions.ts';
import { Upstream } from './upstream.ts';

/** Errors that have their own event. */
const eventOf: { readonly [code in ErrorCode]?: 'unusable' | 'loops' } = {
  invalid_config: 'unusable',
  server_loop: 'loops',
};

/** A connection to a replica, or to one client's instance of it: opened on demand, and reopened when it is lost. */
export class Connection {
  private readonly config: ServerConfig;
  private readonly connector: Connector;
  readonly owner: Client | undefined;
  private readonly settings: ConnectionSettings;
  private readonly context: ReplicaContext<Connection>;
  private readonly events: ConnectionEvents;
  current: LiveUpstream | undefined;
  /** Those that only finish their calls in flight. */
  private readonly leaving = new Set<Upstream>();
  private readonly closing = new Set<Promise<void>>();
  private stopped = false;
  private logLevel: string | undefined;
  opening: Promise<LiveUpstream> | undefined;
  /** How often it was opened, and how long the last time took. */
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
      open: (openChannel) => this.newUpstream(openChannel),
      close: (upstream) => this.closeUpstream(upstream),
      isStopped: () => this.stopped,
      allClosed: () => Promise.all(this.closing),
      subscribedUris: () => this.subscriptions.uris(),
      missed: () => events.missed?.(),
      log: (line) => context.listener.log(line),
    });
    this.slots = slots ?? new Slots(config.concurrency, settings.queueLimit);
    this.lifecycle = new Lifecycle(settings.recovery, {
      changed: () => context.stateChanged(),
      due: () => {
        if (this.current !== undefined) events.recheck?.();
        else this.open().catch(() => {});
      },
    });
  }

  get wasLost(): boolean {
    return this.lifecycle.condition.losses > 0;
  }

  /** Why no call can be sent now, nor wait for a start; undefined if it can. */
  get refusal(): SwitchboardError | undefined {
    return this.current === undefined ? this.lifecycle.refusal(this.config.name) : undefined;
  }

  /** Opens it unless it is open or opening. Rejects at once before the next try is due. */
  open(): Promise<LiveUpstream> {
    if (this.current !== undefined) return Promise.resolve(this.current);
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

  /** Retries now, instead of at the next scheduled try. */
  retry(): void {
    if (this.stopped || this.current !== undefined || this.opening !== undefined) return;
    if (this.lifecycle.condition.state === 'failed') return;
    this.begin(true).catch(() => {});
  }

  /** Whether it must not be closed for being idle. */
  get isBusy(): boolean {
    return (
      this.slots.used > 0 ||
      this.slots.queued > 0 ||
      this.subscriptions.uris().length > 0 ||
      this.leaving.size > 0
    );
  }

  /** Closes it because it leads back to us. */
  refuse(why: SwitchboardError): void {
    const { current } = this;
    if (current === undefined) return;
    this.current = undefined;
    current.listening?.stop();
    this.subscriptions.clear();
    const reason = this.failure(why);
    this.context.listener.log(reason.message);
    this.closeUpstream(current.upstream);
    this.lifecycle.apply({ kind: 'loops', reason });
  }

  /** Closes it until the next use. */
  rest(): void {
    const { current } = this;
    if (current === undefined) return;
    this.current = undefined;
    this.closeUpstream(current.upstream);
    this.lifecycle.apply({ kind: 'rests' });
  }

  /** Takes no new calls. Those in flight continue until close(); those that wait for a start fail. */
  retire(): void {
    this.lifecycle.apply({ kind: 'stops' });
    if (this.current !== undefined) return;
    this.stopped = true;
    if (this.connector.current !== undefined) this.closeUpstream(this.connector.current);
  }

  /** Resolves when everything that it opened is gone. */
  async close(): Promise<void> {
    this.stopped = true;
    this.lifecycle.apply({ kind: 'stops' });
    const { opening } = this;
    const open = [this.current?.upstream, ...this.leaving, this.connector.current];
    this.current = undefined;
    this.leaving.clear();
    for (const upstream of open) if (upstream !== undefined) this.closeUpstream(upstream);
    await opening?.catch(() => {});
    await Promise.all(this.closing);
  }

  async subscribe(uri: string, client: Client): Promise<void> {
    await this.subscriptions.add(uri, client, await this.open());
  }

  async unsubscribe(uri: string, client: Client): Promise<void> {
    if (this.subscriptions.remove(uri, client)) await this.endSubscription(uri);
  }

  release(client: Client): void {
    for (const uri of this.subscriptions.removeClient(client)) {
      this.endSubscription(uri).catch((error: Error) => this.context.listener.log(error.message));
    }
  }

  /** Resolves when the server has the level, or cannot get it. */
  async setLogLevel(level: string | undefined): Promise<void> {
    if (level === undefined || level === this.logLevel) return;
    this.logLevel = level;
    await this.sendLogLevel();
  }

  private async endSubscription(uri: string): Promise<void> {
    if (this.current !== undefined) await sendUnsubscribe(this.current, uri);
  }

  private async start(isHastened: boolean): Promise<LiveUpstream> {
    const { lifecycle } = this;
    const startedAt = performance.now();
    const wasBroken = lifecycle.condition.failedConnects >= this.settings.recovery.breakerFailures;
    lifecycle.apply({ kind: 'starts', isHastened });
    try {
      const live = await this.connector.connect();
      if (this.stopped) {
        this.closeUpstream(live.upstream);
        throw new SwitchboardError('server_unavailable', 'it was stopped');
      }
      if (live.upstream.isGone)
        throw new SwitchboardError('server_unavailable', 'the connection was lost right after the handshake');
      this.current = live;
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
      lifecycle.apply({ kind: eventOf[reason.code] ?? 'connect failed', reason });
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

  private closeUpstream(upstream: Upstream): void {
    const closed = upstream
      .close()
      .catch((error: Error) => this.context.listener.log(error.message))
      .finally(() => this.closing.delete(closed));
    this.closing.add(closed);
    this.context.listener.disconnected(this, upstream);
  }

  private async sendLogLevel(): Promise<void> {
    const { current, logLevel: level } = this;
    if (current === undefined || level === undefined) return;
    const { upstream, facts } = current;
    // Modern requests carry the level themselves.
    if (facts.capabilities.logging === undefined || facts.era === 'modern') return;
    const sent = sendRequest(upstream, 'logging/setLevel', { level }, this.settings.connectTimeoutMs);
    await sent.catch((error: Error) => this.context.listener.log(error.message));
  }

  /** Calls in flight may still get a response. */
  private upstreamStale(upstream: Upstream, error: SwitchboardError, isThere: boolean): void {
    if (this.current?.upstream !== upstream) return;
    this.leaving.add(upstream);
    this.lose(error, isThere);
  }

  private upstreamClosed(upstream: Upstream, error: SwitchboardError): void {
    if (this.current?.upstream === upstream) this.lose(error, false);
    else if (!this.leaving.delete(upstream)) return;
    this.context.listener.disconnected(this, upstream);
  }

  private lose(error: SwitchboardError, isThere: boolean): void {
    const { current } = this;
    this.current = undefined;
    // It keeps a stale upstream open. Its end may close the upstream at once, which must not be current then.
    current?.listening?.stop();
    // Clients subscribe again when the connection is back.
    this.subscriptions.clear();
    this.context.listener.log(error.message);
    this.lifecycle.apply({ kind: 'lost', reason: this.failure(error), isThere });
  }

  private failure(error: unknown): SwitchboardError {
    return redacted(connectError(error, this.config.name), this.settings.redact);
  }
}
