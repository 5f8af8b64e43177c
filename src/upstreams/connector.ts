import { setTimeout as delay } from 'node:timers/promises';
import { channelOpener, type OpenChannel } from '../channels/open.ts';
import { resolveVariables, type ServerConfig, type ServerTransport } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { EndedByQuestionError, type KnownEra, shakeHands } from './handshake.ts';
import { Listening } from './listening.ts';
import type { LiveUpstream } from './live-upstream.ts';
import type { ServerFacts } from './server-facts.ts';
import type { ConnectionSettings } from './settings.ts';
import type { Upstream } from './upstream.ts';

/** The connection that it works for. */
interface ConnectorEvents {
  opened(openChannel: OpenChannel): Upstream;
  /** It came to nothing. */
  end(upstream: Upstream): void;
  isStopped(): boolean;
  /** Settles when everything that was opened before is gone. */
  gone(): Promise<unknown>;
  /** The resources that clients follow. */
  subscribedUris(): string[];
  missed(): void;
  log(line: string): void;
}

/** HTTP answers that mean: no streamable HTTP here. The specification then wants HTTP+SSE tried. */
const notStreamable = new Set([400, 404, 405]);

/** Reaches a server: opens a channel of its kind, finds out which era it is of, and shakes hands. */
export class Connector {
  private readonly config: ServerConfig;
  private readonly settings: ConnectionSettings;
  private readonly known: KnownEra;
  private readonly capabilities: object;
  private readonly events: ConnectorEvents;
  /** The one that shakes hands just now. */
  current: Upstream | undefined;

  constructor(
    config: ServerConfig,
    settings: ConnectionSettings,
    known: KnownEra,
    capabilities: object,
    events: ConnectorEvents,
  ) {
    this.config = config;
    this.settings = settings;
    this.known = known;
    this.capabilities = capabilities;
    this.events = events;
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
    // Two processes of one server at once could get in each other's way.
    if (transport.type === 'stdio') await this.events.gone();
    try {
      return await this.reachOrStartAgain(transport);
    } catch (error) {
      const status = error instanceof SwitchboardError ? error.data.status : undefined;
      const isElsewhere = this.known.only === 'modern' || this.known.patienceMs !== undefined;
      if (transport.type !== 'http' || isElsewhere || !notStreamable.has(status as number)) throw error;
      this.events.log(`no streamable HTTP there (HTTP ${status}); trying HTTP+SSE`);
      return await this.reach({ ...transport, type: 'sse' }).catch(() => Promise.reject(error));
    }
  }

  /**
   * A server that fails in the era that its client wishes for is connected in its own. A process that ends when it is asked
   * for its era is started once more, and not asked again.
   */
  private async reachOrStartAgain(transport: ServerTransport): Promise<LiveUpstream> {
    const { known } = this;
    try {
      return await this.reach(transport);
    } catch (error) {
      if (known.isWished) {
        Object.assign(known, { era: undefined, isWished: false, patienceMs: undefined });
      } else if (error instanceof EndedByQuestionError && known.only === undefined) {
        known.era = 'legacy';
      } else {
        throw error;
      }
      await this.events.gone();
      return await this.reach(transport);
    }
  }

  private async reach(transport: ServerTransport): Promise<LiveUpstream> {
    const { maxMessageBytes, children, hosts } = this.settings;
    const opener = channelOpener(transport, maxMessageBytes, children, hosts);
    // The time until it is its turn to be started is not held against a server.
    if (transport.type === 'stdio') await opener;
    const patience = new AbortController();
    const tooLate = this.tooLate(patience.signal);
    try {
      const openChannel = await Promise.race([opener, tooLate]);
      if (this.events.isStopped()) throw new SwitchboardError('server_unavailable', 'it was stopped');
      const upstream = this.events.opened(openChannel);
      this.current = upstream;
      try {
        const handshake = shakeHands(upstream, this.settings, this.capabilities, this.knownOf(transport));
        const facts = await Promise.race([handshake, tooLate]);
        for (const problem of facts.problems) this.events.log(problem);
        return { upstream, facts, listening: this.listen(upstream, facts) };
      } catch (error) {
        // The failure is told at once; a child that does not want to end is ended behind it.
        this.events.end(upstream);
        throw error;
      }
    } finally {
      this.current = undefined;
      patience.abort();
    }
  }

  /** HTTP+SSE is of the legacy era alone. */
  private knownOf({ type }: ServerTransport): KnownEra {
    return type === 'sse' ? { era: 'legacy', discovered: undefined } : this.known;
  }

  private listen(upstream: Upstream, facts: ServerFacts): Listening | undefined {
    if (facts.era === 'legacy') return undefined;
    return new Listening(upstream, facts, this.settings.recovery.backoff, this.events);
  }

  private async tooLate(signal: AbortSignal): Promise<never> {
    const { connectTimeoutMs } = this.settings;
    const patienceMs = Math.min(connectTimeoutMs, this.known.patienceMs ?? connectTimeoutMs);
    await delay(patienceMs, undefined, { signal, ref: false });
    // It may be another server now, to which what was said means nothing.
    this.known.era = undefined;
    const setting = patienceMs === connectTimeoutMs ? ' (setting connectTimeoutMs)' : '';
    throw new SwitchboardError(
      'server_start_failed',
      `it did not finish the handshake within ${Math.round(patienceMs)} ms${setting}`,
    );
  }
}
