import { setImmediate as immediately } from 'node:timers/promises';
import { type BackoffRule, backoffMs } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import { bytesAt, type Message } from '../protocol/message.ts';
import { asObject } from '../protocol/objects.ts';
import type { OfferKind } from './lists.ts';
import type { PendingRequest } from './request.ts';
import type { ServerFacts } from './server-facts.ts';
import type { Upstream } from './upstream.ts';

interface ListeningEvents {
  /** The resources that clients follow. */
  subscribedUris(): string[];
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

const listKeys = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const;

/** A server that does not acknowledge a subscription in this time will not tell of it. */
const PATIENCE_MS = 60_000;

/**
 * What a server of the modern era is asked to tell of by itself: changes of its lists, on one stream, and of the resources
 * that clients follow, on another. Both are asked for again when they end.
 */
export class Listening {
  private readonly lists: Subscription;
  private readonly resources: Subscription;
  private subscribing: Promise<Filter> | undefined;

  constructor(upstream: Upstream, facts: ServerFacts, backoff: BackoffRule, events: ListeningEvents) {
    const filter = listFilter(facts.capabilities);
    this.lists = new Subscription(upstream, backoff, () => filter, events);
    const resources = () => ({ resourceSubscriptions: events.subscribedUris() });
    this.resources = new Subscription(upstream, backoff, resources, { missed() {}, log: events.log });
    if (!isEmpty(filter)) this.lists.renew().catch((error: Error) => events.log(error.message));
  }

  /** Whether changes of this kind of list are told of. */
  covers(kind: OfferKind): boolean {
    return this.lists.honoured[filterOfKind[kind]] === true;
  }

  /** Wants to be told of one resource more. Fails where the server does not tell of it. */
  async subscribe(uri: string): Promise<void> {
    // Those that are wanted at the same time are asked for at once.
    this.subscribing ??= immediately().then(() => {
      this.subscribing = undefined;
      return this.resources.renew();
    });
    const { resourceSubscriptions } = await this.subscribing;
    if (resourceSubscriptions?.includes(uri)) return;
    throw new SwitchboardError(
      'method_not_found',
      'The server of this resource does not tell of its changes.',
    );
  }

  /** Some resource is not wanted any more. */
  async unsubscribe(): Promise<void> {
    await this.resources.renew();
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

function isEmpty(filter: Filter): boolean {
  return Object.values(filter).every((value) => Array.isArray(value) && value.length === 0);
}

/** One stream: kept open for as long as it is about something. What it is about changes by opening another before it is closed. */
class Subscription {
  private readonly upstream: Upstream;
  private readonly backoff: BackoffRule;
  private readonly filter: () => Filter;
  private readonly events: Pick<ListeningEvents, 'missed' | 'log'>;
  /** All that were asked for and not ended, in that order; the acknowledged one may be among them. */
  private readonly open = new Set<number>();
  private acknowledged: number | undefined;
  private wasLost = true;
  private failures = 0;
  private timer: NodeJS.Timeout | undefined;
  /** What the server said that it tells of. */
  honoured: Filter = {};

  constructor(
    upstream: Upstream,
    backoff: BackoffRule,
    filter: () => Filter,
    events: Pick<ListeningEvents, 'missed' | 'log'>,
  ) {
    this.upstream = upstream;
    this.backoff = backoff;
    this.filter = filter;
    this.events = events;
  }

  /** Asks for what is wanted now. Gives what of it the server says that it tells of. */
  renew(): Promise<Filter> {
    clearTimeout(this.timer);
    const filter = this.filter();
    if (isEmpty(filter)) {
      this.end();
      return Promise.resolve({});
    }
    return this.subscribe(filter);
  }

  end(): void {
    clearTimeout(this.timer);
    this.honoured = {};
    this.acknowledged = undefined;
    this.endAll([...this.open]);
  }

  private subscribe(filter: Filter): Promise<Filter> {
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => {
        reject(new SwitchboardError('call_timeout', 'The server did not acknowledge a subscription.'));
      }, PATIENCE_MS).unref();
      let id = -1;
      const over = (error: SwitchboardError | undefined) => {
        clearTimeout(patience);
        reject(error ?? new SwitchboardError('server_unavailable', 'The server ended the subscription.'));
        this.ended(id, error);
      };
      const call: PendingRequest = {
        client: undefined,
        onResponse: (_chunks, { isError }) => over(isError ? refused : undefined),
        onError: (error) => over(error),
        onAcknowledged: (message) => {
          clearTimeout(patience);
          const honoured = filterIn(message);
          this.takesPlace(id, honoured);
          resolve(honoured);
        },
      };
      id = this.upstream.request('subscriptions/listen', { notifications: filter }, call, 'standing');
      if (id !== -1) this.open.add(id);
    });
  }

  /** Of several that were asked for, the newest that is acknowledged counts. */
  private takesPlace(id: number, honoured: Filter): void {
    if (!this.open.has(id)) return;
    this.acknowledged = id;
    this.honoured = honoured;
    this.failures = 0;
    this.endAll([...this.open].filter((other) => other < id));
    // What has changed before this was told to nobody.
    if (this.wasLost) this.events.missed();
    this.wasLost = false;
  }

  private endAll(ids: readonly number[]): void {
    for (const id of ids) {
      this.open.delete(id);
      this.upstream.cancel(id, undefined);
    }
  }

  /** It is asked for again, ever more slowly while that fails; not where the server has said that it will not. */
  private ended(id: number, error: SwitchboardError | undefined): void {
    this.open.delete(id);
    const wasInPlace = this.acknowledged === id;
    const hadNothing = wasInPlace && isEmpty(this.honoured);
    if (wasInPlace) {
      this.acknowledged = undefined;
      this.honoured = {};
      this.wasLost = true;
    }
    const isLeft = this.open.size > 0 || isEmpty(this.filter());
    if (isLeft || this.upstream.isGone || error === refused || hadNothing) return;
    this.failures++;
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => this.renew().catch((failure: Error) => this.events.log(failure.message)),
      backoffMs(this.failures, this.backoff, Math.random()),
    ).unref();
  }
}

const refused = new SwitchboardError('method_not_found', 'The server refused to tell of changes.');

/** What is acknowledged is what was asked for, or less. */
const LARGEST_ACKNOWLEDGEMENT = 4 * 1024 * 1024;

/** What the server says that it tells of; nothing where it says more than it was asked. */
export function filterIn({ bytes, params }: Message): Filter {
  if (params === undefined || params.end - params.start > LARGEST_ACKNOWLEDGEMENT) return {};
  const { notifications } = asObject(parseBounded(bytesAt(bytes, params).toString()));
  const said = asObject(notifications);
  const filter: Filter = {};
  for (const key of listKeys) if (said[key] === true) filter[key] = true;
  const { resourceSubscriptions: uris } = said;
  if (Array.isArray(uris)) filter.resourceSubscriptions = uris.filter((uri) => typeof uri === 'string');
  return filter;
}
