import { toolFilter } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { ParameterHeader } from '../protocol/parameter-headers.ts';
import type { OfferKind } from './lists.ts';
import { FailureLog } from './log.ts';
import type { Replica } from './replica.ts';
import type { Client } from './request.ts';
import type { RequestTarget } from './routed-request.ts';
import type { Server } from './server.ts';
import { type Backend, noBackends } from './server-errors.ts';
import type { Project } from './settings.ts';

/** Replicas that were tried, and the error of each. */
type Failures = ReadonlyMap<Replica, SwitchboardError>;
type Except = Pick<Failures, 'has'>;

const MAX_TURNS = 10_000;

/** Servers that offer the same things and share the load, with all replicas of each. */
export class Group {
  readonly name: string;
  readonly project: Project;
  members: readonly Server[] = [];
  private replicas: readonly Replica[] = [];
  /** For replicas that offer only some of their tools. */
  private filters: ReadonlyMap<Replica, (tool: string) => boolean> = new Map();
  private labels: ReadonlyMap<Replica, Readonly<Record<string, string>>> = new Map();
  /** Counted for each tool, so that calls of one do not shift the turns of another. */
  private readonly turns = new Map<string, number>();
  /** The replica that holds each client's own instance. */
  private readonly homes = new WeakMap<Client, Replica>();
  /** Logs calls that failed because no server was available. */
  readonly outages: FailureLog;

  constructor(name: string, project: Project, log: (line: string) => void) {
    this.name = name;
    this.project = project;
    this.outages = new FailureLog(`calls of "${name}"`, log);
  }

  setMembers(servers: readonly Server[]): void {
    this.members = servers;
    this.replicas = servers.flatMap(({ replicas }) => replicas);
    this.filters = new Map(
      servers.flatMap(({ replicas, config }) => {
        const isOffered = toolFilter(config.tools);
        return isOffered === undefined ? [] : replicas.map((replica) => [replica, isOffered] as const);
      }),
    );
    this.labels = new Map(
      servers.flatMap(({ replicas, config }) => replicas.map((replica) => [replica, config.labels] as const)),
    );
  }

  /** The replica for a request, `except` those that were tried; undefined if none can take it. */
  pick(target: RequestTarget, except: Except | undefined): Replica | undefined {
    const { client } = target;
    const only = target.only ?? (this.replicas.length === 1 ? this.replicas[0] : undefined);
    if (only !== undefined) {
      return except?.has(only) || only.connections.refusal(client) !== undefined ? undefined : only;
    }
    const able = this.able(target);
    for (const replica of able) replica.wake();
    const candidates = able.filter(
      (replica) => !except?.has(replica) && replica.connections.refusal(client) === undefined,
    );
    if (candidates.length === 0) return undefined;
    const home = this.homes.get(client);
    if (home !== undefined && candidates.includes(home)) return home;
    const chosen = choose(candidates, this.turn(target), this.missingShareOf(target));
    // A client that needs another server for one thing returns to its home afterwards.
    const keepsHome =
      home !== undefined && this.has(home) && !except?.has(home) && !home.connections.refusal(client);
    if (chosen.isolates && !keepsHome) this.homes.set(client, chosen);
    return chosen;
  }

  get isShared(): boolean {
    return this.replicas.length > 1;
  }

  /** Whether clients have their own instances at some replica. */
  get isolates(): boolean {
    return this.replicas.some(({ isolates }) => isolates);
  }

  release(client: Client): void {
    for (const replica of this.replicas) replica.release(client);
  }

  get isLegacy(): boolean {
    return this.replicas.every((replica) => replica.factsFor('modern')?.era === 'legacy');
  }

  replica(server: string, number: number): Replica | undefined {
    return this.replicas.find((one) => one.server === server && one.number === number);
  }

  /** The arguments of a tool that modern clients must repeat in headers. */
  parameterHeaders(tool: string): readonly ParameterHeader[] {
    for (const { discovery } of this.replicas) {
      if (discovery.known?.has('tools', tool)) return discovery.known.parameterHeaders(tool);
    }
    return [];
  }

  has(replica: Replica): boolean {
    return this.replicas.includes(replica);
  }

  mayTake(target: RequestTarget, replica: Replica): boolean {
    return this.able(target).includes(replica);
  }

  /** Whether another replica could take the request right now. */
  hasOther(target: RequestTarget, except: Except): boolean {
    if (target.only !== undefined || this.replicas.length === 1) return false;
    return this.able(target).some(
      (replica) =>
        !except.has(replica) && replica.isLive && replica.connections.refusal(target.client) === undefined,
    );
  }

  openings(target: RequestTarget, except: Except | undefined): Promise<unknown>[] {
    if (target.only !== undefined || this.replicas.length === 1) return [];
    const { client } = target;
    return this.able(target).flatMap((replica) =>
      except?.has(replica) ||
      replica.opening === undefined ||
      replica.connections.refusal(client) !== undefined
        ? []
        : [replica.opening],
    );
  }

  /** Why no replica can take the request: what came of trying each, or else its state. */
  unavailable(target: RequestTarget, tried?: Failures, lastError?: SwitchboardError): SwitchboardError {
    const failures = [...(tried?.values() ?? [])];
    const isBusy = failures.every(({ code }) => code === 'server_busy');
    if (lastError?.code === 'server_busy' && isBusy) return lastError;
    const able = this.able(target);
    const [first] = able;
    if (able.length === 1 && first !== undefined) {
      // Its next try may have become due meanwhile.
      const reason = first.connections.refusal(target.client) ?? lastError ?? first.condition.reason;
      if (reason !== undefined) return reason;
      const { server } = first;
      return new SwitchboardError('server_unavailable', `Server "${server}" is not available.`, {
        data: { server },
      });
    }
    const backends = able.map((replica): Backend => {
      const { state, reason, nextTry } = replica.condition;
      return {
        server: replica.server,
        replica: replica.number,
        state,
        reason: (tried?.get(replica) ?? reason)?.message ?? null,
        nextTry: nextTry === undefined ? null : new Date(nextTry).toISOString(),
      };
    });
    return noBackends(this.name, backends, failures, lastError);
  }

  /** The error of a call that no replica can take. The replicas that were not tried log it too. */
  refuse(
    target: RequestTarget,
    tried: Failures | undefined,
    lastError: SwitchboardError | undefined,
  ): SwitchboardError {
    const error = this.unavailable(target, tried, lastError);
    if (error.code === 'server_busy') return error;
    for (const replica of this.able(target)) if (!tried?.has(replica)) replica.health.note(error);
    this.outages.add(error);
    return error;
  }

  /** Logs a call to a server that was never connected, so that its tools are not known. */
  callMissed(server: string, error: SwitchboardError): void {
    for (const replica of this.replicas) if (replica.server === server) replica.health.note(error);
    this.outages.add(error);
  }

  /** The replicas that offer the target. If none lists it (resources need not be listed), those that may have it. */
  private able({ kind, own, server, among, only }: RequestTarget): readonly Replica[] {
    if (only !== undefined) return [only];
    const scope = server === undefined ? this.replicas : this.replicas.filter((one) => one.server === server);
    if (scope.length === 1) return scope;
    const offering = scope.filter((replica) => this.offers(replica, kind, own));
    if (offering.length > 0) return offering;
    const likely = scope.filter((replica) => among?.includes(replica.server));
    return likely.length === 0 ? scope : likely;
  }

  /** A replica that was never connected offers what its siblings do. */
  private offers(replica: Replica, kind: OfferKind, own: string): boolean {
    if (kind === 'tools' && this.filters.get(replica)?.(own) === false) return false;
    const { known } = replica.discovery;
    if (known !== undefined) return known.has(kind, own);
    return this.replicas.some(
      ({ server, discovery }) => server === replica.server && discovery.known?.has(kind, own) === true,
    );
  }

  private turn({ kind, own, labels }: RequestTarget): number {
    const key = `${kind} ${own}${labels === undefined ? '' : JSON.stringify(labels)}`;
    // Clients choose URIs and labels.
    if (this.turns.size > MAX_TURNS) this.turns.clear();
    const turn = this.turns.get(key) ?? 0;
    this.turns.set(key, turn + 1);
    return turn;
  }

  /** Returns the share of the preferred labels that a replica lacks. */
  private missingShareOf({ labels }: RequestTarget): ((replica: Replica) => number) | undefined {
    if (labels === undefined) return undefined;
    const wanted = Object.entries(labels);
    return (replica) => {
      const missing = wanted.filter(([name, value]) => this.labels.get(replica)?.[name] !== value);
      return missing.length / (wanted.length + 1);
    };
  }
}

export type Candidate = Pick<Replica, 'isLive' | 'isEjected' | 'hasRoom' | 'load'>;

/**
 * Chooses the replica for a call: healthy before ejected ones, then connected ones, then those that lack least of what the
 * client prefers. Equals with room take turns; if none has room, the least loaded gets the call. `lack` is in [0, 1).
 */
export function choose<T extends Candidate>(
  candidates: readonly T[],
  turn: number,
  lack: ((candidate: T) => number) | undefined,
): T {
  const rank = (candidate: T): number =>
    (candidate.isEjected ? 2 : 0) + (candidate.isLive ? 0 : 1) + (lack?.(candidate) ?? 0);
  let best = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) best = Math.min(best, rank(candidate));
  const equals = candidates.filter((candidate) => rank(candidate) === best);
  const withRoom = equals.filter(({ hasRoom }) => hasRoom);
  if (withRoom.length > 0) return withRoom[turn % withRoom.length]!;
  return equals.reduce((least, candidate) => (candidate.load < least.load ? candidate : least));
}
