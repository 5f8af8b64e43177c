import { createHash } from 'node:crypto';
import { storableJson } from '../text.ts';
import { maskedContent } from './mask.ts';

interface Bounds {
  /** Of a text, in characters. */
  text: number;
  /** Of a list or an object, in items. */
  items: number;
  depth: number;
}

const MAX_CONTENT_BYTES = 16 * 1024;
const HASH_LETTERS = 16;
/** What would be left out first, if somebody wanted to hide something. */
const important = new Set(['command', 'id', 'name', 'url']);
const IMPORTANT_TEXT = 256;
const whole: Bounds = { text: MAX_CONTENT_BYTES, items: MAX_CONTENT_BYTES, depth: 100 };
/** From one to the next, less is kept. */
const stricter: readonly Bounds[] = [
  { text: 4_096, items: 400, depth: 20 },
  { text: 1_024, items: 100, depth: 12 },
  { text: 512, items: 40, depth: 8 },
  { text: 128, items: 20, depth: 8 },
  { text: 64, items: 8, depth: 7 },
  { text: 32, items: 4, depth: 6 },
];

/** In the form in which the database returns it. Of what is too large, each field is cut, so that none hides the others. */
export function boundedContent(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  const masked = maskedContent(storable(value));
  for (const bounds of [whole, ...stricter]) {
    const kept = bounded(masked, bounds, '', 0);
    if (bytesOf(kept) <= MAX_CONTENT_BYTES) return kept;
  }
  return omitted(masked);
}

function bounded(value: unknown, bounds: Bounds, field: string, depth: number): unknown {
  if (typeof value === 'string') {
    return shortened(value, important.has(field) ? Math.max(bounds.text, IMPORTANT_TEXT) : bounds.text);
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth > bounds.depth) return omitted(value);
  if (Array.isArray(value)) {
    const [kept, rest] = [value.slice(0, bounds.items), value.slice(bounds.items)];
    const items = kept.map((item) => bounded(item, bounds, field, depth + 1));
    return rest.length === 0 ? items : [...items, more(rest.length, rest)];
  }
  const entries = Object.entries(value).toSorted(([one], [other]) => rankOf(one) - rankOf(other));
  const [kept, rest] = [entries.slice(0, bounds.items), entries.slice(bounds.items)];
  const fields = kept.map(([name, item]) => [
    shortened(name, bounds.text),
    bounded(item, bounds, name, depth + 1),
  ]);
  return Object.fromEntries(rest.length === 0 ? fields : [...fields, ['…', more(rest.length, rest)]]);
}

function rankOf(field: string): number {
  return important.has(field) ? 0 : 1;
}

/** The hash proves what it was. */
function shortened(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const start = text.slice(0, longest).toWellFormed();
  return `${start}… (${text.length} characters, SHA-256 ${hashOf(text)}…)`;
}

function more(count: number, rest: unknown): object {
  return { more: count, sha256: hashOf(JSON.stringify(rest)) };
}

function omitted(value: unknown): object {
  return { omitted: bytesOf(value), sha256: hashOf(JSON.stringify(value)) };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_LETTERS);
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function storable(value: unknown): unknown {
  try {
    return JSON.parse(storableJson(JSON.stringify(value)));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { omitted: 'it is nested too deeply' };
  }
}
