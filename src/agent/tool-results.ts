import { inWords, isObject } from '../json.ts';
import type { ResultContent } from './model.ts';
import type { ToolOutcome } from './toolbox.ts';

type Item = Record<string, unknown>;

/** Model APIs reject a conversation with larger ones. In characters of base64. */
const MAX_IMAGE = 5 * 1024 * 1024;
const MAX_DOCUMENT = 24 * 1024 * 1024;

/** Magic bytes in base64. */
const imageBeginnings: readonly [beginning: string, type: string][] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];

/** A tool result for the model: never empty, and with limited text. */
export function resultContent(outcome: ToolOutcome, maxCharacters: number): ResultContent[] {
  const items = outcome.content.map(contentOf).filter((item) => !isBlank(item));
  if (outcome.structuredContent !== undefined && !items.some(({ type }) => type === 'text')) {
    items.push(text(JSON.stringify(outcome.structuredContent)));
  }
  if (items.length > 0) return cut(items, maxCharacters);
  return [text(outcome.isError ? 'The tool failed without a message.' : 'The tool returned no output.')];
}

export function failureContent(why: string): ResultContent[] {
  return [text(why.trim() === '' ? 'The tool failed without a message.' : why)];
}

/** Invalid content of a server must not end the chat. */
function contentOf(item: unknown): ResultContent {
  if (!isObject(item)) return text(inWords(item));
  switch (item.type) {
    case 'text':
      return text(inWords(item.text ?? ''));
    case 'image':
      return image(inWords(item.mimeType ?? ''), inWords(item.data ?? ''));
    case 'audio':
      return text(`[audio, ${kindAndSize(item.mimeType, item.data)}: it cannot be shown here]`);
    case 'resource':
      return resource(isObject(item.resource) ? item.resource : {});
    case 'resource_link':
      return text(link(item));
    default:
      return text(JSON.stringify(item));
  }
}

function resource({ uri, mimeType, text: value, blob }: Item): ResultContent {
  const type = inWords(mimeType ?? '');
  const title = inWords(uri ?? '');
  if (typeof value === 'string') return text(`Resource ${title}:\n${value}`);
  if (typeof blob !== 'string') return text(`[resource ${title} without contents]`);
  if (type.startsWith('image/')) return image(type, blob);
  if (type === 'application/pdf') return document(type, blob, title);
  if (isTextual(type)) return text(`Resource ${title}:\n${Buffer.from(blob, 'base64').toString()}`);
  return text(`[resource ${title}, ${kindAndSize(type, blob)}: it cannot be shown here]`);
}

function image(mediaType: string, data: string): ResultContent {
  const clean = base64(data);
  if (clean === undefined) return text(`[image, ${mediaType}: it is not valid base64]`);
  if (clean.length > MAX_IMAGE)
    return text(`[image, ${kindAndSize(mediaType, clean)}: it is too large to be shown]`);
  return { type: 'image', mediaType: imageTypeOf(clean) ?? mediaType, data: clean };
}

/** Some servers send a wrong type, for which a model's API rejects the conversation. */
function imageTypeOf(data: string): string | undefined {
  return imageBeginnings.find(([beginning]) => data.startsWith(beginning))?.[1];
}

function document(mediaType: string, data: string, title: string): ResultContent {
  const clean = base64(data);
  if (clean === undefined) return text(`[resource ${title}, ${mediaType}: it is not valid base64]`);
  if (clean.length > MAX_DOCUMENT)
    return text(`[resource ${title}, ${kindAndSize(mediaType, clean)}: it is too large to be shown]`);
  return { type: 'document', mediaType, data: clean, title };
}

function link({ uri, name, title, description, mimeType }: Item): string {
  const facts = [title ?? name, description, mimeType].filter((fact) => typeof fact === 'string');
  return `Link to resource ${inWords(uri ?? '')}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`;
}

/** Removes line breaks. Model APIs reject invalid base64. */
function base64(data: string): string | undefined {
  const clean = data.replaceAll(/\s/g, '');
  return /^[A-Za-z0-9+/]+={0,2}$/.test(clean) ? clean : undefined;
}

function isTextual(type: string): boolean {
  return /^text\/|[/+](json|xml|yaml|javascript|x-yaml)\b/.test(type);
}

function kindAndSize(mimeType: unknown, data: unknown): string {
  const bytes = Buffer.byteLength(inWords(data ?? ''), 'base64');
  return `${inWords(mimeType || 'of unknown type')}, ${bytes} bytes`;
}

/** Truncates the texts to a total length. */
function cut(items: readonly ResultContent[], maxCharacters: number): ResultContent[] {
  let left = maxCharacters;
  let missing = 0;
  const kept: ResultContent[] = [];
  for (const item of items) {
    if (item.type !== 'text') {
      kept.push(item);
      continue;
    }
    const shown = head(item.text, left);
    left = shown.length < item.text.length ? 0 : left - shown.length;
    missing += item.text.length - shown.length;
    if (shown !== '') kept.push(text(shown));
  }
  if (missing > 0) kept.push(text(`[truncated: ${missing} more characters; request less, or a part]`));
  return kept;
}

/** Without half of a surrogate pair at the end. */
function head(value: string, length: number): string {
  const shown = value.slice(0, length);
  return shown.isWellFormed() ? shown : shown.slice(0, -1);
}

function isBlank(item: ResultContent): boolean {
  return item.type === 'text' && item.text.trim() === '';
}

function text(value: string): ResultContent {
  return { type: 'text', text: value.toWellFormed() };
}
