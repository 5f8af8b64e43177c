import { asksInstances, instancesIn } from '../protocol/instances.ts';
import { parameterHeaders } from '../protocol/parameter-headers.ts';
import { MAX_ID_BYTES, MAX_OWN_URI_BYTES } from '../protocol/scalar-limits.ts';
import { type Self, type ServerFacts, ttlOf } from './handshake.ts';
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

const listMethods: Record<OfferKind, ListMethod> = {
  tools: { method: 'tools/list', key: 'tools', capability: 'tools' },
  resources: { method: 'resources/list', key: 'resources', capability: 'resources' },
  templates: { method: 'resources/templates/list', key: 'resourceTemplates', capability: 'resources' },
  prompts: { method: 'prompts/list', key: 'prompts', capability: 'prompts' },
};

export const offerKinds = Object.keys(listMethods) as OfferKind[];

/** A server that pages for ever must not fill our memory. */
const MAX_ITEMS = 100_000;
/** Where the next page begins is sent back as the server wrote it. */
const MAX_CURSOR_LENGTH = 64 * 1024;

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

/** Reads the whole list of one kind, page by page, within the time. A kind that the server does not offer is empty. */
export async function discover(
  { upstream, facts }: { upstream: Upstream; facts: ServerFacts },
  kind: OfferKind,
  { timeoutMs, instance }: { timeoutMs: number; instance: Self['instance'] },
): Promise<Listed> {
  const { method, key, capability } = listMethods[kind];
  if (facts.capabilities[capability] === undefined) {
    return { items: [], ttlMs: Number.POSITIVE_INFINITY, isPublic: true, problems: [] };
  }
  const items: Item[] = [];
  const problems: string[] = [];
  let [ttlMs, isPublic] = [Number.POSITIVE_INFINITY, true];
  let cursor: unknown;
  const asked = facts.instances.length === 0 ? {} : { _meta: asksInstances };
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const left = Math.max(1, Math.ceil(deadline - performance.now()));
    const result = (await upstream.request(
      method,
      cursor === undefined ? asked : { ...asked, cursor },
      left,
    )) as Item | undefined;
    if (facts.instances.length > 0) facts.instances = instancesIn(result ?? {}, instance);
    const listed = result?.[key];
    for (const item of Array.isArray(listed) ? listed.filter(isItem) : []) {
      const problem =
        lengthProblem(item) ?? (upstream.takesLines && kind === 'tools' ? headerProblem(item) : undefined);
      if (problem === undefined) items.push(item);
      else problems.push(problem);
    }
    ttlMs = Math.min(ttlMs, ttlOf(result ?? {}));
    isPublic &&= result?.cacheScope === 'public';
    const next = result?.nextCursor;
    if (typeof next !== 'string' || next === cursor) return { items, ttlMs, isPublic, problems };
    if (next.length > MAX_CURSOR_LENGTH)
      throw new Error(`the cursor of its next page is longer than ${MAX_CURSOR_LENGTH} characters`);
    if (items.length > MAX_ITEMS) throw new Error(`the list of ${kind} has more than ${MAX_ITEMS} items`);
    cursor = next;
  }
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

function isItem(item: unknown): item is Item {
  return typeof item === 'object' && item !== null;
}
