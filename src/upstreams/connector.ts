import { setTimeout as delay } from 'node:timers/promises';
import { channelOpener, type OpenChannel } from '../channels/open.ts';
import { resolveVariables, type ServerConfig, type ServerTransport } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { EndedByDiscoveryError, type KnownEra, shakeHands } from './handshake.ts';
import { Listening } from './listening.ts';
import type { ServerFacts } from './server-facts.ts';
import type { ConnectionSettings } from './settings.ts';
import type { Upstream } from './upstream.ts';

export interface LiveUpstream {
  upstream: Upstream;
  facts: ServerFacts;
  /** Only for modern servers. */
  listening: Listening | undefined;
}

interface ConnectorOwner {
  open(openChannel: OpenChannel): Upstream;
  close(upstream: Upstream): void;
  isStopped(): boolean;
  /** Resolves when everything that was opened before is gone. */
  allClosed(): Promise<unknown>;
  subscribedUris(): string[];
  missed(): void;
  log(line: string): void;
}

/** HTTP statuses of a server without streamable HTTP. The specification asks to try HTTP+SSE then. */
const notStreamable = new Set([400, 404, 405]);

/** Connects to a server: opens a channel, detects the era, and does the handshake. */
export class Connector {
  private readonly config: ServerConfig;
  private readonly settings: ConnectionSettings;
  private readonly known: KnownEra;
  private readonly capabilities: object;
  private readonly owner: ConnectorOwner;
  current: Upstream | undefined;

  constructor(
    config: ServerConfig,
    settings: ConnectionSettings,
    known: KnownEra,
    capabilities: object,
    owner: ConnectorOwner,
  ) {
    this.config = config;
    this.settings = settings;
    this.known = known;
    this.capabilities = capabilities;
    this.owner = owner;
  }

  async connect(): Promise<LiveUpstream> {
    const { config, settings } = this;
    const transport = resolveVariables(
      config.transport,
      config.name,
      (name) => settings.variable(name, config),
      config.project,
    );
    settings.given(transport, config);
    // Two processes of one server at once could conflict.
    if (transport.type === 'stdio') await this.owner.allClosed();
    try {
      return await this.openOrRestart(transport);
    } catch (error) {
      const status = error instanceof SwitchboardError ? error.data.status : undefined;
      // A second connection means that the first one has found streamable HTTP.
      const isStreamable = this.known.only === 'modern' || this.known.timeoutMs !== undefined;
      if (transport.type !== 'http' || isStreamable || !notStreamable.has(status as number)) throw error;
      this.owner.log(`the server has no streamable HTTP (HTTP ${status}); trying HTTP+SSE`);
      return await this.open({ ...transport, type: 'sse' }).catch(() => Promise.reject(error));
    }
  }

  /**
   * If a server fails in the era that its client prefers, its own era is used. A process that exits on discovery is
   * restarted once, as a legacy server.
   */
  private async openOrRestart(transport: ServerTransport): Promise<LiveUpstream> {
    const { known } = this;
    try {
      return await this.open(transport);
    } catch (error) {
      if (known.isWished) {
        Object.assign(known, { era: undefined, isWished: false, timeoutMs: undefined });
      } else if (error instanceof EndedByDiscoveryError && known.only === undefined) {
        known.era = 'legacy';
      } else {
        throw error;
      }
      await this.owner.allClosed();
      return await this.open(transport);
    }
  }

  private async open(transport: ServerTransport): Promise<LiveUpstream> {
    const { maxMessageBytes, children, hosts } = this.settings;
    const opener = channelOpener(transport, maxMessageBytes, children, hosts);
    // The time until the process may be started does not count.
    if (transport.type === 'stdio') await opener;
    const timer = new AbortController();
    const timeout = this.timeout(timer.signal);
    try {
      const openChannel = await Promise.race([opener, timeout]);
      if (this.owner.isStopped()) throw new SwitchboardError('server_unavailable', 'it was stopped');
      const upstream = this.owner.open(openChannel);
      this.current = upstream;
      try {
        const handshake = shakeHands(upstream, this.settings, this.capabilities, this.knownOf(transport));
        const facts = await Promise.race([handshake, timeout]);
        for (const problem of facts.problems) this.owner.log(problem);
        return { upstream, facts, listening: this.listen(upstream, facts) };
      } catch (error) {
        // Does not wait until the process has exited.
        this.owner.close(upstream);
        throw error;
      }
    } finally {
      this.current = undefined;
      timer.abort();
    }
  }

  /** HTTP+SSE exists only in the legacy era. */
  private knownOf({ type }: ServerTransport): KnownEra {
    return type === 'sse' ? { era: 'legacy', discovered: undefined } : this.known;
  }

  private listen(upstream: Upstream, facts: ServerFacts): Listening | undefined {
    if (facts.era === 'legacy') return undefined;
    return new Listening(upstream, facts, this.settings.recovery.backoff, this.owner);
  }

  private async timeout(signal: AbortSignal): Promise<never> {
    const { connectTimeoutMs } = this.settings;
    const timeoutMs = Math.min(connectTimeoutMs, this.known.timeoutMs ?? connectTimeoutMs);
    await delay(timeoutMs, undefined, { signal, ref: false });
    // Another server may run there now, of another era.
    this.known.era = undefined;
    const setting = timeoutMs === connectTimeoutMs ? ' (setting connectTimeoutMs)' : '';
    const message = `it did not complete the handshake within ${Math.round(timeoutMs)} ms${setting}`;
    throw new SwitchboardError('server_start_failed', message);
  }
}
