import { toolFilter } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { ParameterHeader } from '../protocol/parameter-headers.ts';
import { choose } from './balance.ts';
import type { OfferKind } from './lists.ts';
import { FailureLog } from './log.ts';
import type { Replica } from './replica.ts';
import type { Client } from './request.ts';
import type { RequestTarget } from './routed-request.ts';
import type { Server } from './server.ts';
import type { Project } from './settings.ts';

/** The replicas that have been tried already. */
interface Tried {
  has(replica: Replica): boolean;
}

const MAX_TURNS = 10_000;

/** Servers that offer the same things and share the load: all replicas of each. */
export class Group {
  readonly name: string;
  readonly project: Project;
  private servers: readonly Server[] = [];
  private replicas: readonly Replica[] = [];
  /** Of replicas that offer only some of their tools. */
  private filters: ReadonlyMap<Replica, (tool: string) => boolean> = new Map();
  private labels = new Map<Replica, Readonly<Record<string, string>>>();
  /** Whose turn it is, for everything that is asked for: calls of one tool do not shift those of another. */
  private readonly turns = new Map<string, number>();
  private readonly stays = new WeakMap<Client, Replica>();
  private readonly outages: FailureLog;

  /** `tell` takes lines on calls that failed because no server was available. */
  constructor(name: string, project: Project, tell: (line: string) => void) {
    this.name = name;
    this.project = project;
    this.outages = new FailureLog(`calls of "${name}"`, tell);
  }

  get members(): readonly Server[] {
    return this.servers;
  }

  /** Takes these servers as its own from now on. */
  join(servers: readonly Server[]): void {
    this.servers = servers;
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

  /** The replica that a request goes to, `except` those; undefined where there is none that can take it. */
  pick(target: RequestTarget, except: Tried | undefined): Replica | undefined {
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
    const stay = this.stays.get(client);
    if (stay !== undefined && candidates.includes(stay)) return stay;
    const chosen = choose(candidates, this.turn(target), this.preference(target));
    // Who goes elsewhere for one thing that only another server has comes back after it.
    const isAway =
      stay !== undefined && this.has(stay) && !except?.has(stay) && !stay.connections.refusal(client);
    if (chosen.isolates && !isAway) this.stays.set(client, chosen);
    return chosen;
  }

  /** Whether several replicas share what is asked of it. */
  get isShared(): boolean {
    return this.replicas.length > 1;
  }

  /** Whether a client has an instance of its own at some replica. */
  get isolates(): boolean {
    return this.replicas.some(({ isolates }) => isolates);
  }

  /** A client is gone, wherever in the group it has been. */
  release(client: Client): void {
    for (const replica of this.replicas) replica.release(client);
  }

  /** Whether all that is known of its servers is of the legacy era. */
  get isLegacy(): boolean {
    return this.replicas.every(({ isLegacy }) => isLegacy);
  }

  replica(server: string, number: number): Replica | undefined {
    return this.replicas.find((one) => one.server === server && one.number === number);
  }

  /** The arguments of a tool that clients of the modern era have to repeat in headers. */
  parameterHeaders(tool: string): readonly ParameterHeader[] {
    for (const { offer } of this.replicas) {
      if (offer?.has('tools', tool)) return offer.parameterHeaders(tool);
    }
    return [];
  }

  has(replica: Replica): boolean {
    return this.replicas.includes(replica);
  }

  /** Whether a replica is one of those that a request can go to. */
  mayTake(target: RequestTarget, replica: Replica): boolean {
    return this.able(target).includes(replica);
  }

  /** Whether another replica could do the same right now. */
  hasOther(target: RequestTarget, except: Tried): boolean {
    if (target.only !== undefined || this.replicas.length === 1) return false;
    return this.able(target).some(
      (replica) =>
        !except.has(replica) && replica.isLive && replica.connections.refusal(target.client) === undefined,
    );
  }

  /** Those that are about to be there. */
  openings(target: RequestTarget, except: Tried | undefined): Promise<unknown>[] {
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

  /** Why there is none: of each that could have, what came of trying it, or else what is known of it. */
  unavailable(
    target: RequestTarget,
    tried?: ReadonlyMap<Replica, SwitchboardError>,
    lastError?: SwitchboardError,
  ): SwitchboardError {
    if (lastError?.code === 'server_busy' && !hasFailed(tried)) return lastError;
    const able = this.able(target);
    const [first] = able;
    if (able.length === 1 && first !== undefined) {
      // Its next try may have become due since it was asked.
      return (
        first.connections.refusal(target.client) ??
        lastError ??
        first.condition.reason ??
        notThere(first.server)
      );
    }
    const backends = able.map((replica) => backendFacts(replica, tried?.get(replica)));
    return new SwitchboardError(
      'no_backends',
      `No backends available in group "${this.name}": ${backends.map(backendText).join('; ')}.`,
      { cause: lastError, data: { group: this.name, backends, ...soonestRetry(tried) } },
    );
  }

  /** A call fails because nobody is there to take it. Whoever could have, and was not tried, has that in its log too. */
  refuse(
    target: RequestTarget,
    tried: ReadonlyMap<Replica, SwitchboardError> | undefined,
    lastError: SwitchboardError | undefined,
  ): SwitchboardError {
    const error = this.unavailable(target, tried, lastError);
    if (error.code === 'server_busy') return error;
    for (const replica of this.able(target)) if (!tried?.has(replica)) replica.callRefused(error);
    this.outages.add(error);
    return error;
  }

  /** The same where nobody ever was there, so that it is not known what was asked for. */
  callMissed(server: string, error: SwitchboardError): void {
    for (const replica of this.replicas) if (replica.server === server) replica.callRefused(error);
    this.outages.add(error);
  }

  /** A call fails because its server was lost. */
  callLost(error: SwitchboardError): void {
    this.outages.add(error);
  }

  /** The replicas that offer it; where none is known to, for resources need not be listed, those that may. */
  private able({ kind, own, server, among, only }: RequestTarget): readonly Replica[] {
    if (only !== undefined) return [only];
    const asked = server === undefined ? this.replicas : this.replicas.filter((one) => one.server === server);
    if (asked.length === 1) return asked;
    const offering = asked.filter((replica) => this.offers(replica, kind, own));
    if (offering.length > 0) return offering;
    const likely = asked.filter((replica) => among?.includes(replica.server));
    return likely.length === 0 ? asked : likely;
  }

  /** One that was never seen offers what its siblings do. */
  private offers(replica: Replica, kind: OfferKind, own: string): boolean {
    if (kind === 'tools' && this.filters.get(replica)?.(own) === false) return false;
    if (replica.offer !== undefined) return replica.offer.has(kind, own);
    return this.replicas.some(
      (sibling) => sibling.server === replica.server && sibling.offer?.has(kind, own) === true,
    );
  }

  private turn({ kind, own, labels }: RequestTarget): number {
    const key = `${kind} ${own}${labels === undefined ? '' : JSON.stringify(labels)}`;
    // URIs and labels may be without number.
    if (this.turns.size > MAX_TURNS) this.turns.clear();
    const turn = this.turns.get(key) ?? 0;
    this.turns.set(key, turn + 1);
    return turn;
  }

  /** How much of what the client prefers a replica does not have. */
  private preference({ labels }: RequestTarget): ((replica: Replica) => number) | undefined {
    if (labels === undefined) return undefined;
    const wanted = Object.entries(labels);
    return (replica) => {
      const missing = wanted.filter(([name, value]) => this.labels.get(replica)?.[name] !== value);
      return missing.length / (wanted.length + 1);
    };
  }
}

interface BackendFacts {
  server: string;
  replica: number;
  state: string;
  reason: string | null;
  nextTry: string | null;
}

function backendFacts(
  { server, number, condition }: Replica,
  failure: SwitchboardError | undefined,
): BackendFacts {
  const { state, reason, nextTry } = condition;
  return {
    server,
    replica: number,
    state,
    reason: (failure ?? reason)?.message ?? null,
    nextTry: nextTry === undefined ? null : new Date(nextTry).toISOString(),
  };
}

function backendText({ server, replica, state, reason, nextTry }: BackendFacts): string {
  const when = nextTry === null ? '' : `, next try at ${nextTry}`;
  const why = reason === null ? '' : ` (${reason})`;
  return `${server}/${replica} is ${state.replace('_', ' ')}${when}${why}`;
}

/** When to try again, where some of them have said so: one that takes calls again is enough. */
function soonestRetry(tried: ReadonlyMap<Replica, SwitchboardError> | undefined): { retryAfterMs?: number } {
  const named = [...(tried?.values() ?? [])].flatMap(({ data: { retryAfterMs } }) =>
    typeof retryAfterMs === 'number' ? [retryAfterMs] : [],
  );
  return named.length === 0 ? {} : { retryAfterMs: Math.min(...named) };
}

/** Whether more is wrong somewhere than that too many wait. */
function hasFailed(tried: ReadonlyMap<Replica, SwitchboardError> | undefined): boolean {
  return tried?.values().some(({ code }) => code !== 'server_busy') ?? false;
}

function notThere(server: string): SwitchboardError {
  return new SwitchboardError('server_unavailable', `Server "${server}" is not available.`, {
    data: { server },
  });
}
