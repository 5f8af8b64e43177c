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
  /** What is offered of this kind is known anew. `announced`: the server said so, or is back. */
  discovered(kind: OfferKind, announced: boolean): void;
  /** All that was asked for is there, or will not come. */
  settled(): void;
  /** The server leads back to us. */
  loops(error: SwitchboardError): void;
  log(line: string): void;
}

/** What is wrong with the lists, and when they are asked for again. */
export interface MissingLists {
  reason: SwitchboardError;
  nextTry: number;
}

/** A server that announces changes without end is asked at most this often. */
const ASK_EVERY_MS = 200;
/** Nor is one whose lists hold for a shorter time asked for them more often than this. */
const LEAST_TTL_MS = 1_000;

/** What one replica offers, as far as it is known: asked for when it is connected, and when it says that it changed. */
export class Discovery {
  private readonly settings: ReplicaSettings;
  private readonly events: DiscoveryEvents;
  private readonly lives: () => readonly LiveUpstream[];
  private underWay: Promise<void> | undefined;
  private readonly announced = new Set<OfferKind>();
  private timer: NodeJS.Timeout | undefined;
  /** The kinds that could not be listed, and why. */
  private readonly failures = new Map<OfferKind, string>();
  /** What the server says of how long its lists hold. */
  private readonly held = new Map<OfferKind, { until: number; isPublic: boolean }>();
  /** What of each list is left out, and why. */
  private readonly leftOut = new Map<OfferKind, readonly string[]>();
  /** What a server lists in each era that it is connected in. */
  private readonly listed: Record<Era, Map<OfferKind, Item[]>> = { legacy: new Map(), modern: new Map() };
  private attempts = 0;
  /** Kept when the connection is lost. */
  known: KnownOffer | undefined;
  /** Whether all lists were asked for once. */
  isComplete = false;

  /** `lives`: the connections there are, at most one for each era; the word of the first counts. */
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

  /** Settles when nothing is being asked any more. */
  get done(): Promise<void> | undefined {
    return this.underWay;
  }

  /** Asks a new connection for everything. */
  begin(isNews: boolean): void {
    this.failures.clear();
    this.listed.legacy.clear();
    this.listed.modern.clear();
    this.attempts = 0;
    this.fetch(offerKinds, isNews);
  }

  /** Asks once more for what could not be listed. */
  again(): void {
    this.fetch([...this.failures.keys()], false);
  }

  /** Asks for everything, in case something has changed that nobody heard of. What is under way may be too old. */
  async refresh(): Promise<void> {
    await this.underWay;
    this.fetch(offerKinds, false);
  }

  freshness(kind: OfferKind): Freshness {
    const { until = 0, isPublic = false } = this.held.get(kind) ?? {};
    return { ttlMs: Math.max(0, until - Date.now()), isPublic };
  }

  /** Asks for what has been known for longer than its server says that it holds, unless that tells of changes. */
  freshen(): void {
    const { listening } = this.lives()[0] ?? {};
    if (listening === undefined || this.underWay !== undefined) return;
    const now = Date.now();
    const isStale = (kind: OfferKind) =>
      (this.held.get(kind)?.until ?? now) + LEAST_TTL_MS <= now && !listening.covers(kind);
    const stale = offerKinds.filter(isStale);
    if (stale.length > 0) this.fetch(stale, false);
  }

  /** The server says that these have changed. */
  changed(kinds: readonly OfferKind[]): void {
    for (const kind of kinds) this.announced.add(kind);
    this.timer ??= setTimeout(() => this.fetchAnnounced(), this.underWay === undefined ? 0 : ASK_EVERY_MS);
  }

  /** What is missing now; undefined where nothing is. */
  missing(): MissingLists | undefined {
    if (this.failures.size === 0) return undefined;
    return {
      reason: new SwitchboardError('server_protocol_error', [...this.failures.values()].join('; ')),
      nextTry: Date.now() + backoffMs(this.attempts, this.settings.recovery.backoff, Math.random()),
    };
  }

  /** Why its list of a kind is not known, or is an old one; undefined where it is as the server gave it last. */
  failureOf(kind: OfferKind): string | undefined {
    return this.failures.get(kind);
  }

  /** What is not known of what the server offers, because it is too much or cannot be used. */
  get problems(): string[] {
    return [...this.leftOut.values()].flat();
  }

  /** Nothing of it is to be listed any more. */
  forget(): void {
    this.known = undefined;
    this.leftOut.clear();
    for (const kind of offerKinds) this.events.discovered(kind, false);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private fetch(kinds: readonly OfferKind[], isNews: boolean): void {
    const asked = this.fetchLists(kinds, isNews).finally(() => {
      if (this.underWay === asked) this.underWay = undefined;
    });
    this.underWay = asked;
  }

  private async fetchAnnounced(): Promise<void> {
    const kinds = [...this.announced];
    this.announced.clear();
    await this.underWay;
    await this.fetchLists(kinds, true);
    this.timer =
      this.announced.size === 0 ? undefined : setTimeout(() => this.fetchAnnounced(), ASK_EVERY_MS);
  }

  /**
   * Asks for the lists of these kinds, all at once, and takes each as it comes: one that is slow or fails keeps no
   * other back, and stays as it was.
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
          this.held.set(kind, { until: Date.now() + ttlMs, isPublic });
          this.leftOut.set(kind, problems);
          for (const problem of problems) this.events.log(problem);
          // Each connection tells of the same change, and it is passed on once: when the lists are seen to differ.
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

  /** Asks all connections for a list. That of the first has to come; the others may be left as they were. */
  private async list(
    [first, ...others]: readonly LiveUpstream[],
    kind: OfferKind,
  ): ReturnType<typeof fetchList> {
    const fetch = async (live: LiveUpstream) => {
      const list = await fetchList(live, kind, this.settings);
      this.listed[live.facts.era].set(kind, list.items);
      return list;
    };
    const asked = Promise.all(others.map((live) => fetch(live).catch(() => {})));
    const list = await fetch(first!);
    await asked;
    return list;
  }

  /** What a server lists in both eras, as far as it was asked in both. */
  private itemsOf({ facts: { era } }: LiveUpstream, kind: OfferKind): Item[] {
    const first = this.listed[era].get(kind) ?? [];
    const second = this.listed[otherEra[era]].get(kind);
    return second === undefined ? first : mergeLists(kind, [first, second]);
  }

  /** What a server announced is passed on even where the list is the same: only the server knows what it meant. */
  private async take(
    kind: OfferKind,
    items: Item[],
    isNews: boolean,
    isCurrent: () => boolean,
  ): Promise<void> {
    const isSame = await areSame(this.known?.offer[kind] ?? [], items);
    if (!isCurrent()) return;
    const before = this.known?.offer ?? { tools: [], resources: [], templates: [], prompts: [] };
    // Who has the old ones need not compare them again.
    if (!isSame || this.known === undefined) this.known = new KnownOffer({ ...before, [kind]: items });
    if (isNews || !isSame) this.events.discovered(kind, isNews);
  }
}

const SLICE = 200;

/** Compares two lists, and lets others have their turn in between. */
async function areSame(before: readonly Item[], after: readonly Item[]): Promise<boolean> {
  if (before.length !== after.length) return false;
  for (let start = 0; start < after.length; start += SLICE) {
    if (start > 0) await nextTurn();
    const end = start + SLICE;
    if (!isDeepStrictEqual(before.slice(start, end), after.slice(start, end))) return false;
  }
  return true;
}
