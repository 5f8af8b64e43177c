import { setImmediate as immediately } from 'node:timers/promises';
import { type BackoffRule, backoffMs } from '../channels/backoff.ts';
import { SwitchboardError } from '../errors.ts';
import { bytesAt, type Message } from '../protocol/envelope.ts';
import type { OfferKind } from './discovery.ts';
import type { ServerFacts } from './handshake.ts';
import type { Upstream } from './upstream.ts';

interface ListeningEvents {
  /** For a while nobody listened: what the server would have said is lost. */
  missed(): void;
  log(line: string): void;
}

/** What a subscription is about. */
interface Filter {
  toolsListChanged?: boolean;
  promptsListChanged?: boolean;
  resourcesListChanged?: boolean;
  resourceSubscriptions?: string[];
}

const filterOfKind: Record<OfferKind, keyof Filter> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
  templates: 'resourcesListChanged',
};

/** A server that does not acknowledge a subscription in this time will not tell of it. */
const PATIENCE_MS = 60_000;

/**
 * What a server of the modern era is asked to tell of by itself: changes of its lists, on one stream, and of the resources
 * that clients follow, on another. Both are asked for again when they end.
 */
export class Listening {
  private readonly lists: Subscription;
  private readonly resources: Subscription;
  private following: Promise<Filter> | undefined;

  constructor(
    upstream: Upstream,
    { capabilities }: ServerFacts,
    backoff: BackoffRule,
    events: ListeningEvents,
  ) {
    this.lists = new Subscription(upstream, backoff, events);
    this.resources = new Subscription(upstream, backoff, { missed() {}, log: events.log });
    const filter = listFilter(capabilities);
    if (Object.keys(filter).length > 0)
      this.lists.want(filter).catch((error: Error) => events.log(error.message));
  }

  /** Whether changes of this kind of list are told of. */
  covers(kind: OfferKind): boolean {
    return this.lists.honoured[filterOfKind[kind]] === true;
  }

  /** Wants to be told of one resource more; `all` gives all that are wanted. Fails where the server does not tell of it. */
  async follow(uri: string, all: () => string[]): Promise<void> {
    // Those that are wanted at the same time are asked for at once.
    this.following ??= immediately().then(() => {
      this.following = undefined;
      return this.resources.want({ resourceSubscriptions: all() });
    });
    const { resourceSubscriptions } = await this.following;
    if (resourceSubscriptions?.includes(uri)) return;
    throw new SwitchboardError(
      'method_not_found',
      'The server of this resource does not tell of its changes.',
    );
  }

  async unfollow(uris: string[]): Promise<void> {
    if (uris.length === 0) this.resources.end();
    else await this.resources.want({ resourceSubscriptions: uris });
  }

  stop(): void {
    this.lists.end();
    this.resources.end();
  }
}

function listFilter(capabilities: ServerFacts['capabilities']): Filter {
  const filter: Filter = {};
  for (const [capability, key] of [
    ['tools', 'toolsListChanged'],
    ['prompts', 'promptsListChanged'],
    ['resources', 'resourcesListChanged'],
  ] as const) {
    const { listChanged } = (capabilities[capability] ?? {}) as { listChanged?: unknown };
    if (listChanged === true) filter[key] = true;
  }
  return filter;
}

/** One stream: kept open for as long as it is wanted. What it is about changes by opening another before it is closed. */
class Subscription {
  private readonly upstream: Upstream;
  private readonly backoff: BackoffRule;
  private readonly events: ListeningEvents;
  private wanted: Filter | undefined;
  private current: number | undefined;
  /** The last that was asked for, acknowledged or not. */
  private newest: number | undefined;
  private failures = 0;
  private timer: NodeJS.Timeout | undefined;
  /** What the server said that it tells of. */
  honoured: Filter = {};

  constructor(upstream: Upstream, backoff: BackoffRule, events: ListeningEvents) {
    this.upstream = upstream;
    this.backoff = backoff;
    this.events = events;
  }

  /** Gives what of it the server says that it tells of. */
  want(filter: Filter): Promise<Filter> {
    clearTimeout(this.timer);
    this.wanted = filter;
    return this.open(false);
  }

  end(): void {
    clearTimeout(this.timer);
    this.wanted = undefined;
    this.honoured = {};
    for (const id of new Set([this.current, this.newest])) {
      if (id !== undefined) this.upstream.cancel(id, undefined);
    }
    this.current = this.newest = undefined;
  }

  private open(isAgain: boolean): Promise<Filter> {
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => {
        reject(new SwitchboardError('call_timeout', 'The server did not acknowledge a subscription.'));
      }, PATIENCE_MS).unref();
      let id: number | undefined;
      const over = (error: SwitchboardError | undefined) => {
        clearTimeout(patience);
        reject(error ?? new SwitchboardError('server_unavailable', 'The server ended the subscription.'));
        if (id === undefined || id === this.newest) this.ended(error);
      };
      id = this.upstream.listen(this.wanted!, {
        client: undefined,
        answered: (_chunks, { isError }) => over(isError ? refused : undefined),
        failed: (error) => over(error),
        acknowledged: (message) => {
          clearTimeout(patience);
          resolve(this.acknowledged(id!, message, isAgain));
        },
      });
      this.newest = id === -1 ? undefined : id;
    });
  }

  private acknowledged(id: number, message: Message, isAgain: boolean): Filter {
    const filter = filterIn(message);
    const { current } = this;
    if (this.wanted === undefined || (current !== undefined && current > id)) {
      // A newer one has taken its place before it was acknowledged.
      this.upstream.cancel(id, undefined);
      return filter;
    }
    this.current = id;
    this.failures = 0;
    this.honoured = filter;
    if (current !== undefined && current !== id) this.upstream.cancel(current, undefined);
    // What has changed before this was told to nobody.
    if (isAgain || current === undefined) this.events.missed();
    return filter;
  }

  /** It is asked for again, ever more slowly while that fails; not where the server has said that it will not. */
  private ended(error: SwitchboardError | undefined): void {
    const wasAcknowledged = this.current === this.newest;
    const hadNothing = wasAcknowledged && Object.keys(this.honoured).length === 0;
    this.newest = undefined;
    if (wasAcknowledged) {
      this.current = undefined;
      this.honoured = {};
    }
    if (this.wanted === undefined || this.upstream.isGone || error === refused || hadNothing) return;
    this.failures++;
    const delayMs = backoffMs(this.failures, this.backoff, Math.random());
    this.timer = setTimeout(() => {
      this.open(true).catch((failure: Error) => this.events.log(failure.message));
    }, delayMs).unref();
  }
}

const refused = new SwitchboardError('method_not_found', 'The server refused to tell of changes.');

function filterIn({ bytes, params }: Message): Filter {
  const { notifications } = JSON.parse(bytesAt(bytes, params!).toString()) as { notifications?: unknown };
  return typeof notifications === 'object' && notifications !== null ? (notifications as Filter) : {};
}
