import type { ServerConfig } from '../config.ts';
import type { SwitchboardError } from '../errors.ts';
import { type Era, otherEra } from '../protocol/versions.ts';
import { type Condition, overall } from './condition.ts';
import type { Connection } from './connection.ts';
import type { ReplicaContext } from './connection-context.ts';
import { isRefusal, type KnownEra, relayedCapabilities } from './handshake.ts';
import type { LiveUpstream } from './live-upstream.ts';
import { RpcResponseError } from './server-errors.ts';

/** What a replica does about its shared connections. */
interface SharedEvents {
  /** The first is open. */
  opened(live: LiveUpstream, wasBroken: boolean): void;
  /** The server is connected in its second era too. */
  joined(): void;
  recheck(): void;
  missed(): void;
}

/** A server that says nothing at all to the words of its second era is not waited for longer than this, beyond the time that it takes to start. */
const SILENT_MS = 5_000;

/**
 * The connections to a replica that clients share. There is one to begin with. Where the server may speak the other era too,
 * the first client of that era has a second one opened; if that fails, the first one serves both eras.
 */
export class SharedConnections {
  private readonly config: ServerConfig;
  private readonly known: KnownEra;
  private readonly context: ReplicaContext<Connection>;
  private readonly events: SharedEvents;
  /** Which one clients of an era take. */
  private readonly byEra: Record<Era, Connection>;
  private readonly closing = new Set<Promise<void>>();
  /** Whether the server is known to have no second era. */
  private isSingle = false;
  readonly first: Connection;
  private second: Connection | undefined;

  constructor(
    config: ServerConfig,
    known: KnownEra,
    context: ReplicaContext<Connection>,
    events: SharedEvents,
  ) {
    this.config = config;
    this.known = known;
    this.context = context;
    this.events = events;
    this.first = context.connect(
      { owner: undefined, capabilities: relayedCapabilities, known },
      {
        opened: (live, wasBroken) => {
          this.firstOpened(live);
          events.opened(live, wasBroken);
        },
        failed: ({ message }) => context.listener.log(message),
        recheck: events.recheck,
        missed: events.missed,
      },
    );
    this.byEra = { legacy: this.first, modern: this.first };
  }

  /** The connection that clients of this era take. */
  for(era: Era): Connection {
    return this.byEra[era];
  }

  /** One state for both. A second connection that nobody has needed yet says nothing. */
  get condition(): Condition {
    const { condition } = this.first.lifecycle;
    const second = this.second?.lifecycle.condition;
    return second === undefined || second.state === 'idle' ? condition : overall([condition, second]);
  }

  get all(): Connection[] {
    return this.second === undefined ? [this.first] : [this.first, this.second];
  }

  get lives(): LiveUpstream[] {
    return this.all.flatMap(({ current }) => current ?? []);
  }

  get isLive(): boolean {
    return this.first.current !== undefined || this.second?.current !== undefined;
  }

  get isBusy(): boolean {
    return this.all.some(({ isBusy }) => isBusy);
  }

  /** How often they were opened after the first time. */
  get restarts(): number {
    return this.all.reduce((sum, { opens }) => sum + Math.max(0, opens - 1), 0);
  }

  /** What a connection of a client's own goes by: where the server may have both eras, it is opened in the client's. */
  knownFor(era: Era): KnownEra {
    const { era: usual } = this.known;
    if (usual === undefined || usual === era || !this.mayHave(era)) return this.known;
    if (era === 'modern') return { era: undefined, discovered: undefined };
    return { era, isWished: true, discovered: undefined, patienceMs: this.secondEraPatienceMs };
  }

  /** A connection of a client's own was opened in this era, whatever was wanted. */
  ownOpened(wanted: Era, era: Era): void {
    if (wanted !== era) this.isSingle = true;
  }

  /** Ends both, because they lead back to us. */
  refuse(why: SwitchboardError): void {
    this.first.refuse(why);
    this.drop();
  }

  rest(): void {
    for (const connection of this.all) connection.rest();
  }

  retry(): void {
    this.first.retry();
    if (this.second?.lifecycle.condition.state !== 'idle') this.second?.retry();
  }

  async close(): Promise<void> {
    await Promise.all([...this.all.map((connection) => connection.close()), ...this.closing]);
  }

  private firstOpened({ facts: { era } }: LiveUpstream): void {
    const other = otherEra[era];
    // What comes in the place of a server that was lost may speak both.
    if (this.first.lifecycle.condition.losses > 0) this.isSingle = false;
    const isSecond = this.second !== undefined && this.byEra[other] === this.second;
    this.byEra[era] = this.first;
    if (isSecond) return;
    this.drop();
    if (this.mayHave(other)) this.prepare(other);
  }

  /** Whether a server that was connected in the one era may speak this one too. */
  private mayHave(era: Era): boolean {
    const { era: setting, transport } = this.config;
    // What we host has one process, and it has one pipe.
    if (this.isSingle || setting !== 'auto' || transport.type === 'hosted') return false;
    // Servers are asked first whether they are of the modern era.
    return era === 'legacy' || this.known.discovered !== undefined;
  }

  private get secondEraPatienceMs(): number {
    return SILENT_MS + 2 * this.first.openedInMs;
  }

  /** Makes a second connection; the first client of that era opens it. */
  private prepare(era: Era): void {
    const second: Connection = this.context.connect(
      {
        owner: undefined,
        capabilities: relayedCapabilities,
        known: { era, discovered: undefined, only: era, patienceMs: this.secondEraPatienceMs },
        slots: this.first.slots,
      },
      {
        opened: ({ upstream }) => {
          // One that keeps no session can ask nothing in the legacy era, and everything in the modern one.
          if (era === 'legacy' && !upstream.canAsk)
            this.giveUp(second, era, 'it keeps no sessions in that era');
          else {
            second.lifecycle.apply({ kind: 'ready' });
            this.events.joined();
          }
        },
        failed: ({ message }, cause) => {
          // One that was open once is tried again like any other.
          if (second.opens === 0 || isFinal(cause)) this.giveUp(second, era, message);
          else this.context.listener.log(message);
        },
        missed: this.events.missed,
      },
    );
    this.second = second;
    this.byEra[era] = second;
  }

  private giveUp(second: Connection, era: Era, why: string): void {
    if (this.second !== second || this.first.lifecycle.condition.state === 'stopped') return;
    this.drop();
    this.context.listener.log(`${era} clients use the ${otherEra[era]} connection, with translation: ${why}`);
    // A server that is not there at all has not shown which eras it speaks.
    if (this.first.current === undefined) return;
    this.isSingle = true;
    // Its clients have to do with the first one from now on.
    this.context.listener.connected(this.first);
  }

  /** From now on there is only the first one. */
  private drop(): void {
    const { second } = this;
    this.second = undefined;
    this.byEra.legacy = this.first;
    this.byEra.modern = this.first;
    if (second === undefined) return;
    const closed = second.close().finally(() => this.closing.delete(closed));
    this.closing.add(closed);
  }
}

/** Whether a server has said that it does not speak an era, and not only failed to. */
function isFinal(cause: unknown): boolean {
  return cause instanceof RpcResponseError || isRefusal(cause);
}
