import { setTimeout as delay } from 'node:timers/promises';
import { channelOpener } from '../channels/open.ts';
import type { ChildRecord } from '../channels/stdio.ts';
import { resolveVariables, type ServerConfig, type ServerTransport } from '../config.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/envelope.ts';
import { type Identity, type ServerFacts, shakeHands } from './handshake.ts';
import type { ServerLog } from './log.ts';
import { Subscriptions } from './subscriptions.ts';
import { type Call, ServerAnsweredError, Upstream } from './upstream.ts';

export interface ConnectionSettings {
  identity: Identity;
  connectTimeoutMs: number;
  maxMessageBytes: number;
  /** Where `${VAR}` in a server's configuration comes from. */
  variable(name: string): string | undefined;
  /** Where the processes of servers are noted. */
  children: ChildRecord;
}

export interface LiveUpstream {
  upstream: Upstream;
  facts: ServerFacts;
}

/** Something that a server says by itself. `call` is the call that it belongs to, where that is certain. */
export interface Word {
  connection: Connection;
  upstream: Upstream;
  message: Message;
  call: Call | undefined;
}

export interface ConnectionEvents {
  notified(word: Word): void;
  asked(word: Word): void;
  starting(): void;
  opened(live: LiveUpstream): void;
  /** It could not be opened, or it broke; `upstream` is what is gone, where there was one. */
  lost(error: SwitchboardError, upstream?: Upstream): void;
}

/** HTTP answers that mean: no streamable HTTP here. The specification then wants HTTP+SSE tried. */
const notStreamable = new Set([400, 404, 405]);

/** The one connection to a server, or to one client's own instance of it: opened when needed, once. */
export class Connection {
  private readonly config: ServerConfig;
  private readonly settings: ConnectionSettings;
  private readonly capabilities: object;
  private readonly events: ConnectionEvents;
  private opening: Promise<LiveUpstream> | undefined;
  private live: LiveUpstream | undefined;
  /** The one that shakes hands just now. */
  private connecting: Upstream | undefined;
  private readonly closing = new Set<Promise<void>>();
  private stopped = false;
  private logLevel: string | undefined;
  readonly log: ServerLog;
  readonly subscriptions = new Subscriptions();

  constructor(
    config: ServerConfig,
    settings: ConnectionSettings,
    capabilities: object,
    log: ServerLog,
    events: ConnectionEvents,
  ) {
    this.config = config;
    this.settings = settings;
    this.capabilities = capabilities;
    this.log = log;
    this.events = events;
  }

  /** The live upstream, if there is one: the way of every call after the first. */
  get current(): LiveUpstream | undefined {
    return this.live;
  }

  /** Opens it, or gives what is open or opening. */
  open(): Promise<LiveUpstream> {
    if (this.live !== undefined) return Promise.resolve(this.live);
    this.opening ??= this.start().finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  /** Settles when no client has a call under way here any more. */
  async drained(): Promise<void> {
    await this.live?.upstream.drained();
  }

  /** Settles when everything that was ever opened here is gone. */
  async close(): Promise<void> {
    this.stopped = true;
    const { live, connecting, opening } = this;
    this.live = undefined;
    if (live !== undefined) this.end(live.upstream);
    if (connecting !== undefined) this.end(connecting);
    await opening?.catch(() => {});
    await Promise.all(this.closing);
  }

  setLogLevel(level: string | undefined): void {
    if (level === undefined || level === this.logLevel) return;
    this.logLevel = level;
    if (this.live !== undefined) this.sendLogLevel(this.live);
  }

  private async start(): Promise<LiveUpstream> {
    if (this.stopped) throw this.failure(new SwitchboardError('server_unavailable', 'it was stopped'));
    this.events.starting();
    try {
      const live = await this.connectOrFallBack();
      if (live.upstream.isGone)
        throw new SwitchboardError('server_unavailable', 'it ended right after the handshake');
      this.live = live;
      this.sendLogLevel(live);
      this.events.opened(live);
      return live;
    } catch (error) {
      const failure = this.failure(error);
      this.events.lost(failure);
      throw failure;
    }
  }

  private async connectOrFallBack(): Promise<LiveUpstream> {
    const transport = resolveVariables(this.config.transport, this.config.name, this.settings.variable);
    try {
      return await this.connect(transport);
    } catch (error) {
      const status = error instanceof SwitchboardError ? error.data.status : undefined;
      if (transport.type !== 'http' || !notStreamable.has(status as number)) throw error;
      this.log.add(`no streamable HTTP there (HTTP ${status}); trying HTTP+SSE`);
      return await this.connect({ ...transport, type: 'sse' }).catch(() => Promise.reject(error));
    }
  }

  private async connect(transport: ServerTransport): Promise<LiveUpstream> {
    const { maxMessageBytes, children } = this.settings;
    const openChannel = await channelOpener(transport, maxMessageBytes, children);
    if (this.stopped) throw new SwitchboardError('server_unavailable', 'it was stopped');
    const upstream: Upstream = new Upstream(
      {
        notified: (message, call) => this.events.notified({ connection: this, upstream, message, call }),
        asked: (message, call) => this.events.asked({ connection: this, upstream, message, call }),
        log: (line) => this.log.add(line),
        closed: (error) => this.upstreamClosed(upstream, error),
      },
      openChannel,
    );
    this.connecting = upstream;
    const patience = new AbortController();
    try {
      const facts = await Promise.race([
        shakeHands(upstream, this.settings.identity, this.capabilities),
        this.tooLate(patience.signal),
      ]);
      if (this.stopped) throw new SwitchboardError('server_unavailable', 'it was stopped');
      return { upstream, facts };
    } catch (error) {
      // The failure is told at once; a child that does not want to end is ended behind it.
      this.end(upstream);
      throw error;
    } finally {
      this.connecting = undefined;
      patience.abort();
    }
  }

  private end(upstream: Upstream): void {
    const ended = upstream
      .close()
      .catch((error: Error) => this.log.add(error.message))
      .finally(() => this.closing.delete(ended));
    this.closing.add(ended);
  }

  private async tooLate(signal: AbortSignal): Promise<never> {
    await delay(this.settings.connectTimeoutMs, undefined, { signal, ref: false });
    throw new SwitchboardError(
      'server_start_failed',
      `it did not finish the handshake within ${this.settings.connectTimeoutMs} ms (setting connectTimeoutMs)`,
    );
  }

  private sendLogLevel({ upstream, facts }: LiveUpstream): void {
    if (this.logLevel === undefined || facts.capabilities.logging === undefined) return;
    upstream
      .request('logging/setLevel', { level: this.logLevel }, this.settings.connectTimeoutMs)
      .catch((error: Error) => this.log.add(error.message));
  }

  private upstreamClosed(upstream: Upstream, error: SwitchboardError): void {
    if (this.live?.upstream !== upstream) return;
    this.live = undefined;
    // Who follows what is for the next one to be told anew.
    this.subscriptions.clear();
    this.log.add(error.message);
    this.events.lost(this.failure(error), upstream);
  }

  /** Every error that leaves here says which server it is about. */
  private failure(error: unknown): SwitchboardError {
    const { name } = this.config;
    if (error instanceof ServerAnsweredError) {
      return new SwitchboardError(
        'server_start_failed',
        `Server "${name}" refused the handshake: ${error.message}`,
        {
          cause: error,
          data: { server: name },
        },
      );
    }
    const known = asSwitchboardError(error);
    if (known.data.server === name) return known;
    const code = known.code === 'internal' ? 'server_start_failed' : known.code;
    return new SwitchboardError(code, `Server "${name}" is not available: ${known.message}`, {
      cause: error,
      data: { ...known.data, server: name },
    });
  }
}
