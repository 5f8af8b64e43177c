import { isObject } from '../json.ts';
import { asksInstances, instancesIn } from '../protocol/instances.ts';
import { join, METHOD_NOT_FOUND, type RpcError } from '../protocol/jsonrpc.ts';
import { LARGEST_MEMBER, type ListLimits, readList } from '../protocol/list-reader.ts';
import { parameterHeaders } from '../protocol/parameter-headers.ts';
import { MAX_ID_BYTES, MAX_OWN_URI_BYTES } from '../protocol/scalar-limits.ts';
import { sendRawRequest } from './own-requests.ts';
import { notJson, RpcResponseError } from './server-errors.ts';
import { type ServerFacts, ttlOf } from './server-facts.ts';
import type { ListSettings, ReplicaSettings } from './settings.ts';
import type { Upstream } from './upstream.ts';

/** A tool, resource, template or prompt exactly as its server describes it. */
export type Item = Record<string, unknown>;

export interface Offer {
  tools: Item[];
  resources: Item[];
  templates: Item[];
  prompts: Item[];
}

export type OfferKind = keyof Offer;

interface ListMethod {
  method: string;
  key: string;
  capability: string;
}

/** The key that identifies an item of each kind. Every item has it, as a string. */
export const keyOf: Record<OfferKind, string> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  templates: 'uriTemplate',
};

export const listMethods: Record<OfferKind, ListMethod> = {
  tools: { method: 'tools/list', key: 'tools', capability: 'tools' },
  resources: { method: 'resources/list', key: 'resources', capability: 'resources' },
  templates: { method: 'resources/templates/list', key: 'resourceTemplates', capability: 'resources' },
  prompts: { method: 'prompts/list', key: 'prompts', capability: 'prompts' },
};

export const offerKinds = Object.keys(listMethods) as OfferKind[];

/** The lists that a notification announces as changed. */
export const listsOfNotification: ReadonlyMap<string, readonly OfferKind[]> = new Map([
  ['notifications/tools/list_changed', ['tools']],
  ['notifications/resources/list_changed', ['resources', 'templates']],
  ['notifications/prompts/list_changed', ['prompts']],
]);

/** The limit for one item with its schemas. */
const MAX_ITEM_BYTES = 1024 * 1024;
/** Many clients fail on nesting deeper than a thousand levels, and would get no list. */
const MAX_ITEM_DEPTH = 500;
/** A server may return next pages endlessly. */
const MAX_PAGES = 10_000;
const MAX_PROBLEMS = 20;

/** The TTL of a list, and whether it is the same for all clients. */
export interface Freshness {
  /** 0 if the server gives none. */
  ttlMs: number;
  isPublic: boolean;
}

interface Listed extends Freshness {
  items: Item[];
  /** Why items were left out. */
  problems: string[];
}

export function listLimits({ listItems, listBytes }: ListSettings): ListLimits {
  return { items: listItems, bytes: listBytes, itemBytes: MAX_ITEM_BYTES, itemDepth: MAX_ITEM_DEPTH };
}

type ListRequestSettings = Pick<ReplicaSettings, 'connectTimeoutMs' | 'instance' | 'lists'>;

/** For a list that the server does not have. */
const UNCHANGING = { ttlMs: Number.POSITIVE_INFINITY, isPublic: true, problems: [] };

/** Fetches all pages of a list before the timeout. A kind that the server does not offer is empty. */
export async function fetchList(
  { upstream, facts }: { upstream: Upstream; facts: ServerFacts },
  kind: OfferKind,
  { connectTimeoutMs, instance, lists: limits }: ListRequestSettings,
): Promise<Listed> {
  const { method, key, capability } = listMethods[kind];
  if (facts.capabilities[capability] === undefined) {
    return { items: [], ...UNCHANGING };
  }
  const list = new ListBuilder(kind, limits, upstream.takesLines);
  let cursor: string | undefined;
  const base = facts.instances.length === 0 ? {} : { _meta: asksInstances };
  const deadline = performance.now() + connectTimeoutMs;
  for (let pages = 1; ; pages++) {
    const left = Math.max(1, Math.ceil(deadline - performance.now()));
    const params = cursor === undefined ? base : { ...base, cursor };
    const answer = join(await sendRawRequest(upstream, method, params, left));
    const page = await readList(answer, key, list.room).catch((error: unknown) =>
      Promise.reject(notJson(method, error)),
    );
    const { result, error } = page;
    if (error !== undefined) {
      // Servers with resources but without templates often lack this method.
      if (kind !== 'tools' && (error as RpcError).code === METHOD_NOT_FOUND)
        return { items: list.items, ...UNCHANGING };
      throw new RpcResponseError(method, error as RpcError);
    }
    if (facts.instances.length > 0) facts.instances = instancesIn(result, instance);
    list.add(page);
    const next = result.nextCursor;
    const isOver = typeof next !== 'string' || next === cursor;
    const isFull = list.isFull || page.beyond > 0 || pages >= MAX_PAGES;
    if (page.beyond > 0 || (!isOver && isFull)) {
      list.cut('the rest is over the limits (settings maxListItems, maxListBytes)');
    }
    if (isOver || isFull) return list.built();
    cursor = next;
  }
}

class ListBuilder {
  private readonly kind: OfferKind;
  private readonly limits: ListSettings;
  private readonly hasHeaders: boolean;
  private readonly problems = new Problems();
  private ttlMs = Number.POSITIVE_INFINITY;
  private isPublic = true;
  private bytesLeft: number;
  readonly items: Item[] = [];

  /** `hasHeaders`: arguments of tools may also be sent as headers. */
  constructor(kind: OfferKind, limits: ListSettings, hasHeaders: boolean) {
    this.kind = kind;
    this.limits = limits;
    this.hasHeaders = hasHeaders;
    this.bytesLeft = limits.listBytes;
  }

  /** What is left of the limits for the next page. */
  get room(): ListLimits {
    return {
      ...listLimits(this.limits),
      items: this.limits.listItems - this.items.length,
      bytes: this.bytesLeft,
    };
  }

  get isFull(): boolean {
    return this.items.length >= this.limits.listItems;
  }

  add(page: Awaited<ReturnType<typeof readList>>): void {
    const { kind, problems } = this;
    for (const item of page.items.filter(isObject)) {
      const problem =
        keyProblem(kind, item) ??
        lengthProblem(item) ??
        (this.hasHeaders && kind === 'tools' ? headerProblem(item) : undefined);
      if (problem === undefined) this.items.push(item);
      else problems.add(problem);
    }
    this.bytesLeft -= page.bytes;
    if (page.tooLarge > 0)
      problems.add(
        `${page.tooLarge} of its ${kind} are left out: larger than ${MAX_ITEM_BYTES} bytes, or nested deeper than ${MAX_ITEM_DEPTH} levels`,
      );
    this.ttlMs = Math.min(this.ttlMs, ttlOf(page.result));
    this.isPublic &&= page.result.cacheScope === 'public';
    if (page.largeMembers.includes('nextCursor'))
      this.cut(`the cursor of the next page is longer than ${LARGEST_MEMBER} bytes`);
  }

  cut(why: string): void {
    this.problems.add(`its ${this.kind} are cut at ${this.items.length}: ${why}`);
  }

  built(): Listed {
    const { items, ttlMs, isPublic } = this;
    return { items, ttlMs, isPublic, problems: this.problems.all() };
  }
}

/** The number is limited, because every item may have a problem. */
class Problems {
  private readonly first: string[] = [];
  private more = 0;

  add(problem: string): void {
    if (this.first.length < MAX_PROBLEMS) this.first.push(problem);
    else this.more++;
  }

  all(): string[] {
    return this.more === 0 ? this.first : [...this.first, `and ${this.more} more problems of this list`];
  }
}

/** An item without a key cannot be requested. */
function keyProblem(kind: OfferKind, item: Item): string | undefined {
  const key = keyOf[kind];
  return typeof item[key] === 'string'
    ? undefined
    : `one of its ${kind} is left out: its ${key} is not a string`;
}

/** Requests for a longer name or URI would be rejected. */
function lengthProblem({ name, uri, uriTemplate }: Item): string | undefined {
  if (isLonger(name, MAX_ID_BYTES))
    return `"${name.slice(0, 40)}…" is left out: its name is longer than ${MAX_ID_BYTES} bytes`;
  const address = uri ?? uriTemplate;
  if (isLonger(address, MAX_OWN_URI_BYTES))
    return `"${address.slice(0, 40)}…" is left out: its URI is longer than ${MAX_OWN_URI_BYTES} bytes`;
  return undefined;
}

function isLonger(text: unknown, maxBytes: number): text is string {
  // A UTF-16 unit has at most three bytes in UTF-8, so the bytes are rarely counted.
  return typeof text === 'string' && text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes;
}

/** A tool with invalid header annotations cannot be called. */
function headerProblem({ name, inputSchema }: Item): string | undefined {
  const headers = parameterHeaders(inputSchema);
  return 'problem' in headers ? `its tool "${name}" is left out: ${headers.problem}` : undefined;
}
