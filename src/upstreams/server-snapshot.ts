import { setImmediate as nextTurn } from 'node:timers/promises';
import { readList } from '../protocol/list-reader.ts';
import { listLimits, listMethods, type Offer, offerKinds } from './lists.ts';
import type { ListSettings } from './settings.ts';

/** What a server last sent about itself. */
export interface ServerSnapshot {
  offer: Offer;
  instructions: string | undefined;
  extensions: unknown;
}

/** Larger lists are not persisted, but fetched at each start. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
const SLICE = 200;

/** Has the format of a combined response to all list requests, so that it is parsed like one. Undefined if too long. */
export async function serializeSnapshot(snapshot: ServerSnapshot): Promise<string | undefined> {
  const { offer, instructions, extensions } = snapshot;
  const parts: string[] = [];
  let length = 0;
  for (const kind of offerKinds) {
    const items: string[] = [];
    for (const item of offer[kind]) {
      const text = JSON.stringify(item);
      length += text.length;
      if (length > MAX_CHARACTERS) return undefined;
      if (items.push(text) % SLICE === 0) await nextTurn();
    }
    parts.push(`${JSON.stringify(listMethods[kind].key)}:[${items.join(',')}]`);
  }
  const said = JSON.stringify({ instructions, extensions });
  return `{"result":{${parts.join(',')},"said":${said}}}`;
}

/** Rejects if the text is not a snapshot. */
export async function parseSnapshot(text: string, limits: ListSettings): Promise<ServerSnapshot> {
  const bytes = Buffer.from(text);
  const offer: Offer = { tools: [], resources: [], templates: [], prompts: [] };
  let said: unknown;
  for (const kind of offerKinds) {
    const page = await readList(bytes, listMethods[kind].key, listLimits(limits));
    offer[kind] = page.items as Offer[typeof kind];
    said = page.result.said;
  }
  const { instructions, extensions } = (said ?? {}) as { instructions?: unknown; extensions?: unknown };
  return { offer, instructions: typeof instructions === 'string' ? instructions : undefined, extensions };
}
