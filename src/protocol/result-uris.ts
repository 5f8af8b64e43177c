import { OPEN_LIST, OPEN_OBJECT, QUOTE } from './json-bytes.ts';
import { JsonScanner, type Span } from './json-scanner.ts';
import type { Chunks } from './jsonrpc.ts';
import type { Shape } from './large-walk.ts';

const content: Shape = { uri: 'string', resource: { uri: 'string' } };

/** Where the results of these methods contain URIs of resources. */
export const uriShapes: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ['tools/call', { result: { content: { each: content } } }],
  ['tasks/result', { result: { content: { each: content } } }],
  ['tasks/get', { result: { result: { content: { each: content } } } }],
  ['prompts/get', { result: { messages: { each: { content: { ...content, each: content } } } } }],
  ['resources/read', { result: { contents: { each: { uri: 'string' } } } }],
]);

/** Results of tools/call and prompts/get contain URIs only next to a content type that starts like this. */
const MARK = '"resource';
/**
 * The part to search for. The engine finds the first byte of a short pattern fast and compares the rest slowly, and `u`
 * is rare: this takes a third of the time of a search for the whole mark.
 */
const RARE_PART = 'urce';
const BEFORE_PART = MARK.length - RARE_PART.length;
const CARRIED = MARK.length - 1;

export function mayHoldUris(method: string, result: Chunks): boolean {
  if (method === 'resources/read') return true;
  if (!uriShapes.has(method)) return false;
  const content = method === 'tools/call' && result.length > 1 ? shortContent(result[0]!) : undefined;
  if (content !== undefined) return hasMark(content);
  // The end of the previous chunks: a mark may be split over two chunks, or over many small ones.
  let tail: Buffer = Buffer.alloc(0);
  return result.some((chunk) => {
    if (hasMark(chunk) || (tail.length > 0 && hasMark(Buffer.concat([tail, chunk.subarray(0, CARRIED)]))))
      return true;
    tail = (chunk.length < CARRIED ? Buffer.concat([tail, chunk]) : chunk).subarray(-CARRIED);
    return false;
  });
}

const CONTENT_FIRST = '"result":{"content":[';
const SHORT_BYTES = 2_048;

/**
 * The content of a result, if it comes first and is short. Only the content can hold URIs; the structured content after
 * it may be large, and is relayed unchanged.
 */
function shortContent(first: Buffer): Buffer | undefined {
  const head = first.subarray(0, SHORT_BYTES);
  const start = head.indexOf(CONTENT_FIRST, 0, 'latin1');
  // The second brace must be that of the result, so that this is not nested in something else.
  if (start === -1 || head.indexOf('{', 1, 'latin1') !== start + CONTENT_FIRST.indexOf('{')) return undefined;
  // The text is long: skip the scan, which would fail.
  if (!head.includes(']', start, 'latin1')) return undefined;
  const scanner = new JsonScanner(head, start + CONTENT_FIRST.length - 1);
  try {
    scanner.skip(0);
  } catch {
    return undefined;
  }
  return head.subarray(start, scanner.at);
}

/** With more occurrences, the mark is assumed to be present: every stop of the search takes time. */
const FEW_STOPS = 100;
const BYTES_PER_STOP = 512;

function hasMark(chunk: Buffer): boolean {
  const maxStops = FEW_STOPS + chunk.length / BYTES_PER_STOP;
  let at = chunk.indexOf(RARE_PART, 0, 'latin1');
  for (let stops = 0; at !== -1; stops++) {
    if (stops > maxStops) return true;
    if (at >= BEFORE_PART && chunk.toString('latin1', at - BEFORE_PART, at + RARE_PART.length) === MARK)
      return true;
    at = chunk.indexOf(RARE_PART, at + 1, 'latin1');
  }
  return false;
}

/** The ranges of all URIs in the result of this method, with quotes. */
export function resultUriSpans(method: string, bytes: Buffer): Span[] {
  const shape = uriShapes.get(method);
  const found: Span[] = [];
  if (shape !== undefined) walk(new JsonScanner(bytes), shape, found);
  return found;
}

function walk(scanner: JsonScanner, wanted: Shape[string] | undefined, found: Span[]): void {
  const first = scanner.peek();
  if (wanted === 'string' && first === QUOTE) {
    found.push(scanner.span());
  } else if (typeof wanted === 'object' && first === OPEN_OBJECT) {
    scanner.object((start, end, escaped) => {
      const raw = Buffer.from(scanner.bytes.buffer, scanner.bytes.byteOffset + start, end - start).toString();
      const key = escaped ? (JSON.parse(`"${raw}"`) as string) : raw;
      const isWanted = key !== 'each' && Object.hasOwn(wanted, key);
      walk(scanner, isWanted ? wanted[key] : undefined, found);
    });
  } else if (typeof wanted === 'object' && first === OPEN_LIST && wanted.each !== undefined) {
    scanner.array(() => walk(scanner, wanted.each, found));
  } else {
    scanner.skip(0);
  }
}
