import { inWords } from '../protocol/objects.ts';
import type { ResultContent } from './model.ts';
import type { ToolOutcome } from './toolbox.ts';

type Item = Record<string, unknown>;

/** Larger ones are refused by the APIs of models, and the whole conversation with them. In characters of base64. */
const MAX_IMAGE = 5 * 1024 * 1024;
const MAX_DOCUMENT = 24 * 1024 * 1024;

/** How images begin, in base64. */
const imageBeginnings: readonly [beginning: string, type: string][] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];

/** What a tool gave, as models take it: never empty, and with no more text than so many characters. */
export function resultContent(outcome: ToolOutcome, maxCharacters: number): ResultContent[] {
  const items = outcome.content.map(contentOf).filter((item) => !isBlank(item));
  if (outcome.structuredContent !== undefined && !items.some(({ type }) => type === 'text')) {
    items.push(text(JSON.stringify(outcome.structuredContent)));
  }
  if (items.length > 0) return cut(items, maxCharacters);
  return [text(outcome.isError ? 'The tool failed without saying why.' : 'The tool gave no output.')];
}

/** A failure, in the words in which the model is told of it. */
export function failureContent(why: string): ResultContent[] {
  return [text(why.trim() === '' ? 'The tool failed without saying why.' : why)];
}

/** Servers give what they like, and one that is wrong must not end the chat. */
function contentOf(item: unknown): ResultContent {
  if (!isItem(item)) return text(inWords(item));
  switch (item.type) {
    case 'text':
      return text(inWords(item.text ?? ''));
    case 'image':
      return image(inWords(item.mimeType ?? ''), inWords(item.data ?? ''));
    case 'audio':
      return text(`[audio, ${kindAndSize(item.mimeType, item.data)}: it cannot be shown here]`);
    case 'resource':
      return resource(isItem(item.resource) ? item.resource : {});
    case 'resource_link':
      return text(link(item));
    default:
      return text(JSON.stringify(item));
  }
}

function resource({ uri, mimeType, text: words, blob }: Item): ResultContent {
  const type = inWords(mimeType ?? '');
  const title = inWords(uri ?? '');
  if (typeof words === 'string') return text(`Resource ${title}:\n${words}`);
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

/** Servers mistake one kind for another, and a model's API then refuses the whole conversation. */
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

/** Servers that break lines in base64 mean no harm; anything else in it would be refused by the model's API. */
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

/** Cuts texts at the end of what is allowed for all of them together. */
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
  if (missing > 0)
    kept.push(text(`[cut: ${missing} more characters were left out; ask for less, or for a part]`));
  return kept;
}

/** The beginning of a text, without half of a character at its end. */
function head(words: string, length: number): string {
  const shown = words.slice(0, length);
  return shown.isWellFormed() ? shown : shown.slice(0, -1);
}

function isBlank(item: ResultContent): boolean {
  return item.type === 'text' && item.text.trim() === '';
}

function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null;
}

function text(words: string): ResultContent {
  return { type: 'text', text: words.toWellFormed() };
}
