import { setImmediate as immediately } from 'node:timers/promises';
import { type BackoffRule, backoffMs } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import { asObject } from '../json.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import { bytesAt, type Message } from '../protocol/message.ts';
import type { OfferKind } from './lists.ts';
import type { PendingRequest } from './request.ts';
import type { ServerFacts } from './server-facts.ts';
import type { Upstream } from './upstream.ts';

interface ListeningEvents {
  subscribedUris(): string[];
  /** Notifications may have been lost while no stream was open. */
  missed(): void;
  log(line: string): void;
}

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

const ACKNOWLEDGE_TIMEOUT_MS = 60_000;

/** Subscribes to changes of a modern server: of its lists on one stream, and of resources on another. Reopens both. */
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

  /** Whether the server announces changes of this list. */
  covers(kind: OfferKind): boolean {
    return this.lists.honoured[filterOfKind[kind]] === true;
  }

  /** Subscribes to one more resource. Rejects if the server does not accept it. */
  async subscribe(uri: string): Promise<void> {
    // Subscriptions of one turn share a request.
    this.subscribing ??= immediately().then(() => {
      this.subscribing = undefined;
      return this.resources.renew();
    });
    const { resourceSubscriptions } = await this.subscribing;
    if (resourceSubscriptions?.includes(uri)) return;
    throw new SwitchboardError('method_not_found', 'The server does not announce changes of this resource.');
  }

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

/** One stream, open while its filter is not empty. To change the filter, a new stream is opened before the old one is closed. */
class Subscription {
  private readonly upstream: Upstream;
  private readonly backoff: BackoffRule;
  private readonly filter: () => Filter;
  private readonly events: Pick<ListeningEvents, 'missed' | 'log'>;
  /** The ids of all open requests, oldest first, with or without the acknowledged one. */
  private readonly open = new Set<number>();
  private acknowledged: number | undefined;
  private wasLost = true;
  private failures = 0;
  private timer: NodeJS.Timeout | undefined;
  /** The part of the filter that the server accepted. */
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

  /** Subscribes to the current filter, and returns the part that the server accepts. */
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
      const timer = setTimeout(() => {
        reject(new SwitchboardError('call_timeout', 'The server did not acknowledge a subscription.'));
      }, ACKNOWLEDGE_TIMEOUT_MS).unref();
      let id = -1;
      const over = (error: SwitchboardError | undefined) => {
        clearTimeout(timer);
        reject(error ?? new SwitchboardError('server_unavailable', 'The server ended the subscription.'));
        this.ended(id, error);
      };
      const call: PendingRequest = {
        client: undefined,
        onResponse: (_chunks, { isError }) => over(isError ? refused : undefined),
        onError: (error) => over(error),
        onAcknowledged: (message) => {
          clearTimeout(timer);
          const honoured = filterIn(message);
          this.takesPlace(id, honoured);
          resolve(honoured);
        },
      };
      id = this.upstream.request('subscriptions/listen', { notifications: filter }, call, 'standing');
      if (id !== -1) this.open.add(id);
    });
  }

  /** The newest acknowledged request replaces older ones. */
  private takesPlace(id: number, honoured: Filter): void {
    if (!this.open.has(id)) return;
    this.acknowledged = id;
    this.honoured = honoured;
    this.failures = 0;
    this.endAll([...this.open].filter((other) => other < id));
    // Changes before this were not announced.
    if (this.wasLost) this.events.missed();
    this.wasLost = false;
  }

  private endAll(ids: readonly number[]): void {
    for (const id of ids) {
      this.open.delete(id);
      this.upstream.cancel(id, undefined);
    }
  }

  /** Resubscribes with backoff, unless the server refused. */
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

const refused = new SwitchboardError('method_not_found', 'The server refused the subscription.');

const LARGEST_ACKNOWLEDGEMENT = 4 * 1024 * 1024;

/** The accepted part of the filter; empty if the acknowledgement is too large. */
export function filterIn({ bytes, params }: Message): Filter {
  if (params === undefined || params.end - params.start > LARGEST_ACKNOWLEDGEMENT) return {};
  const { notifications } = asObject(parseBounded(bytesAt(bytes, params).toString()));
  const accepted = asObject(notifications);
  const filter: Filter = {};
  for (const key of listKeys) if (accepted[key] === true) filter[key] = true;
  const { resourceSubscriptions: uris } = accepted;
  if (Array.isArray(uris)) filter.resourceSubscriptions = uris.filter((uri) => typeof uri === 'string');
  return filter;
}
