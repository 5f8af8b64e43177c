import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { backoffMs } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import { type Era, otherEra } from '../protocol/versions.ts';
import type { LiveUpstream } from './connector.ts';
import { type Freshness, fetchList, type Item, type Offer, type OfferKind, offerKinds } from './lists.ts';
import { KnownOffer, mergeLists } from './offers.ts';
import type { ReplicaSettings } from './settings.ts';

interface DiscoveryEvents {
  /** A list was fetched. `announced`: the server announced a change, or is back. */
  discovered(kind: OfferKind, announced: boolean): void;
  /** All requested lists were fetched or have failed. */
  settled(): void;
  loops(error: SwitchboardError): void;
  log(line: string): void;
}

export interface MissingLists {
  reason: SwitchboardError;
  nextTry: number;
}

/** The shortest interval between fetches for a server that keeps announcing changes. */
const ASK_EVERY_MS = 200;
/** Lists with a shorter TTL are not fetched more often than this. */
const LEAST_TTL_MS = 1_000;

/** What one replica offers. Fetches its lists when it is connected, and when it announces changes. */
export class Discovery {
  private readonly settings: ReplicaSettings;
  private readonly events: DiscoveryEvents;
  private readonly lives: () => readonly LiveUpstream[];
  private fetching: Promise<void> | undefined;
  private readonly announced = new Set<OfferKind>();
  private timer: NodeJS.Timeout | undefined;
  /** By kind, the reason why it could not be listed. */
  private readonly failures = new Map<OfferKind, string>();
  /** The TTL and cache scope that the server gave each list. */
  private readonly expiries = new Map<OfferKind, { until: number; isPublic: boolean }>();
  /** By kind, the items that are left out, and why. */
  private readonly leftOut = new Map<OfferKind, readonly string[]>();
  private readonly listed: Record<Era, Map<OfferKind, Item[]>> = { legacy: new Map(), modern: new Map() };
  private attempts = 0;
  /** Kept when the connection is lost. */
  known: KnownOffer | undefined;
  /** Whether all lists were requested once. */
  isComplete = false;

  /** `lives`: the open connections, at most one for each era; the first has priority. */
  constructor(
    settings: ReplicaSettings,
    lives: () => readonly LiveUpstream[],
    inherited: Offer | undefined,
    events: DiscoveryEvents,
  ) {
    this.known = inherited && new KnownOffer(inherited);
    this.settings = settings;
    this.lives = lives;
    this.events = events;
  }

  /** Settles when no fetch is in progress. */
  get done(): Promise<void> | undefined {
    return this.fetching;
  }

  /** Fetches all lists over a new connection. */
  begin(isNews: boolean): void {
    this.failures.clear();
    this.listed.legacy.clear();
    this.listed.modern.clear();
    this.attempts = 0;
    this.fetch(offerKinds, isNews);
  }

  /** Retries the lists that failed. */
  again(): void {
    this.fetch([...this.failures.keys()], false);
  }

  /** Fetches all lists, in case notifications were lost. A fetch in progress may have started too early. */
  async refresh(): Promise<void> {
    await this.fetching;
    this.fetch(offerKinds, false);
  }

  freshness(kind: OfferKind): Freshness {
    const { until = 0, isPublic = false } = this.expiries.get(kind) ?? {};
    return { ttlMs: Math.max(0, until - Date.now()), isPublic };
  }

  /** Fetches lists whose TTL has expired, except those whose changes the server announces. */
  freshen(): void {
    const { listening } = this.lives()[0] ?? {};
    if (listening === undefined || this.fetching !== undefined) return;
    const now = Date.now();
    const isStale = (kind: OfferKind) =>
      (this.expiries.get(kind)?.until ?? now) + LEAST_TTL_MS <= now && !listening.covers(kind);
    const stale = offerKinds.filter(isStale);
    if (stale.length > 0) this.fetch(stale, false);
  }

  /** The server announced changes of these lists. */
  changed(kinds: readonly OfferKind[]): void {
    for (const kind of kinds) this.announced.add(kind);
    this.timer ??= setTimeout(() => this.fetchAnnounced(), this.fetching === undefined ? 0 : ASK_EVERY_MS);
  }

  missing(): MissingLists | undefined {
    if (this.failures.size === 0) return undefined;
    return {
      reason: new SwitchboardError('server_protocol_error', [...this.failures.values()].join('; ')),
      nextTry: Date.now() + backoffMs(this.attempts, this.settings.recovery.backoff, Math.random()),
    };
  }

  /** Why the list of this kind is missing or outdated; undefined if it is current. */
  failureOf(kind: OfferKind): string | undefined {
    return this.failures.get(kind);
  }

  /** What is left out because it is too large or unusable. */
  get problems(): string[] {
    return [...this.leftOut.values()].flat();
  }

  /** Removes all its items. */
  forget(): void {
    this.known = undefined;
    this.leftOut.clear();
    for (const kind of offerKinds) this.events.discovered(kind, false);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private fetch(kinds: readonly OfferKind[], isNews: boolean): void {
    const started = this.fetchLists(kinds, isNews).finally(() => {
      if (this.fetching === started) this.fetching = undefined;
    });
    this.fetching = started;
  }

  private async fetchAnnounced(): Promise<void> {
    const kinds = [...this.announced];
    this.announced.clear();
    await this.fetching;
    await this.fetchLists(kinds, true);
    this.timer =
      this.announced.size === 0 ? undefined : setTimeout(() => this.fetchAnnounced(), ASK_EVERY_MS);
  }

  /**
   * Fetches lists concurrently, and applies each as it arrives, so that a slow or failing one delays no other. A failed
   * list keeps its old items.
   */
  private async fetchLists(kinds: readonly OfferKind[], isNews: boolean): Promise<void> {
    const lives = this.lives();
    const [live] = lives;
    if (live === undefined) return;
    this.attempts++;
    const isCurrent = () => this.lives()[0] === live;
    await Promise.all(
      kinds.map(async (kind) => {
        try {
          const { ttlMs, isPublic, problems } = await this.list(lives, kind);
          this.failures.delete(kind);
          if (!isCurrent()) return;
          this.expiries.set(kind, { until: Date.now() + ttlMs, isPublic });
          this.leftOut.set(kind, problems);
          for (const problem of problems) this.events.log(problem);
          // With two connections, both announce the same change: report it only if the lists differ.
          await this.take(kind, this.itemsOf(live, kind), isNews && lives.length === 1, isCurrent);
        } catch (error) {
          if (!isCurrent()) return;
          if (error instanceof SwitchboardError && error.code === 'server_loop') {
            this.events.loops(error);
            return;
          }
          const failure = `its ${kind} could not be listed: ${(error as Error).message}`;
          this.failures.set(kind, failure);
          this.events.log(failure);
        }
      }),
    );
    if (!isCurrent()) return;
    this.isComplete = true;
    this.events.settled();
  }

  /** Fetches a list over all connections. Only the first must succeed; the others may keep their old items. */
  private async list(
    [first, ...others]: readonly LiveUpstream[],
    kind: OfferKind,
  ): ReturnType<typeof fetchList> {
    const fetch = async (live: LiveUpstream) => {
      const list = await fetchList(live, kind, this.settings);
      this.listed[live.facts.era].set(kind, list.items);
      return list;
    };
    const second = Promise.all(others.map((live) => fetch(live).catch(() => {})));
    const list = await fetch(first!);
    await second;
    return list;
  }

  /** Merges the lists of both eras, if both are known. */
  private itemsOf({ facts: { era } }: LiveUpstream, kind: OfferKind): Item[] {
    const first = this.listed[era].get(kind) ?? [];
    const second = this.listed[otherEra[era]].get(kind);
    return second === undefined ? first : mergeLists(kind, [first, second]);
  }

  /** Reports an announced change even if the list is equal: only the server knows what it meant. */
  private async take(
    kind: OfferKind,
    items: Item[],
    isNews: boolean,
    isCurrent: () => boolean,
  ): Promise<void> {
    const isSame = await areSame(this.known?.offer[kind] ?? [], items);
    if (!isCurrent()) return;
    const before = this.known?.offer ?? { tools: [], resources: [], templates: [], prompts: [] };
    // Keeps the old objects, so that others need not compare them again.
    if (!isSame || this.known === undefined) this.known = new KnownOffer({ ...before, [kind]: items });
    if (isNews || !isSame) this.events.discovered(kind, isNews);
  }
}

const SLICE = 200;

/** Compares in slices, to let other work run. */
async function areSame(before: readonly Item[], after: readonly Item[]): Promise<boolean> {
  if (before.length !== after.length) return false;
  for (let start = 0; start < after.length; start += SLICE) {
    if (start > 0) await nextTurn();
    const end = start + SLICE;
    if (!isDeepStrictEqual(before.slice(start, end), after.slice(start, end))) return false;
  }
  return true;
}
