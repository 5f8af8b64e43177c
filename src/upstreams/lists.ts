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

/** What one server offers. */
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

/** By which key an item of each kind is known. Each item has it, and as a text. */
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

/** The lists that a notification says have changed. */
export const listsOfNotification: ReadonlyMap<string, readonly OfferKind[]> = new Map([
  ['notifications/tools/list_changed', ['tools']],
  ['notifications/resources/list_changed', ['resources', 'templates']],
  ['notifications/prompts/list_changed', ['prompts']],
]);

/** One item: its description, and its schemas. */
const MAX_ITEM_BYTES = 1024 * 1024;
/** Many clients cannot read what is nested deeper than a thousand levels, and would get no list at all. */
const MAX_ITEM_DEPTH = 500;
/** A server may page for ever. */
const MAX_PAGES = 10_000;
const MAX_PROBLEMS = 20;

/** What a server says of how long a list holds, and whether it is the same for everybody. */
export interface Freshness {
  /** 0 where it does not say. */
  ttlMs: number;
  isPublic: boolean;
}

/** One whole list. */
interface Listed extends Freshness {
  items: Item[];
  /** What is wrong with items that were left out. */
  problems: string[];
}

/** What is taken of one list. */
export function listLimits({ listItems, listBytes }: ListSettings): ListLimits {
  return { items: listItems, bytes: listBytes, itemBytes: MAX_ITEM_BYTES, itemDepth: MAX_ITEM_DEPTH };
}

type ListRequestSettings = Pick<ReplicaSettings, 'connectTimeoutMs' | 'instance' | 'lists'>;

/** What a server says of a list that it does not have. */
const UNCHANGING = { ttlMs: Number.POSITIVE_INFINITY, isPublic: true, problems: [] };

/** Reads the whole list of one kind, page by page, within the time. A kind that the server does not offer is empty. */
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
  const asked = facts.instances.length === 0 ? {} : { _meta: asksInstances };
  const deadline = performance.now() + connectTimeoutMs;
  for (let pages = 1; ; pages++) {
    const left = Math.max(1, Math.ceil(deadline - performance.now()));
    const params = cursor === undefined ? asked : { ...asked, cursor };
    const answer = join(await sendRawRequest(upstream, method, params, left));
    const page = await readList(answer, key, list.room).catch((error: unknown) =>
      Promise.reject(notJson(method, error)),
    );
    const { result, error } = page;
    if (error !== undefined) {
      // Servers that have resources and no templates often do not know of lists of those.
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

/** A list of which some pages have come. */
class ListBuilder {
  private readonly kind: OfferKind;
  private readonly limits: ListSettings;
  private readonly hasHeaders: boolean;
  private readonly problems = new Problems();
  private ttlMs = Number.POSITIVE_INFINITY;
  private isPublic = true;
  private bytesLeft: number;
  readonly items: Item[] = [];

  /** `hasHeaders`: arguments of tools travel as headers too. */
  constructor(kind: OfferKind, limits: ListSettings, hasHeaders: boolean) {
    this.kind = kind;
    this.limits = limits;
    this.hasHeaders = hasHeaders;
    this.bytesLeft = limits.listBytes;
  }

  /** What of the next page is taken. */
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

/** What is wrong with a list. There may be as much as there are items. */
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

/** What nobody could ask for, because nobody could name it. */
function keyProblem(kind: OfferKind, item: Item): string | undefined {
  const key = keyOf[kind];
  return typeof item[key] === 'string'
    ? undefined
    : `one of its ${kind} is left out: its ${key} is not a text`;
}

/** What nobody could ask for, because the request would be refused. */
function lengthProblem({ name, uri, uriTemplate }: Item): string | undefined {
  if (isLonger(name, MAX_ID_BYTES))
    return `"${name.slice(0, 40)}…" is left out: its name is longer than ${MAX_ID_BYTES} bytes`;
  const address = uri ?? uriTemplate;
  if (isLonger(address, MAX_OWN_URI_BYTES))
    return `"${address.slice(0, 40)}…" is left out: its URI is longer than ${MAX_OWN_URI_BYTES} bytes`;
  return undefined;
}

function isLonger(text: unknown, maxBytes: number): text is string {
  // A character has three bytes at the most, so that nearly none has to be counted.
  return typeof text === 'string' && text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes;
}

/** A tool whose arguments cannot be put into headers as it wants cannot be called. */
function headerProblem({ name, inputSchema }: Item): string | undefined {
  const headers = parameterHeaders(inputSchema);
  return 'problem' in headers ? `its tool "${name}" is left out: ${headers.problem}` : undefined;
}
