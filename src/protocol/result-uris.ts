import { JsonScanner, type Span } from './json-scanner.ts';
import { type Chunks, includes } from './jsonrpc.ts';

/** The places in a message where a string is wanted, as nested keys; `each` stands for the elements of an array. */
export interface Shape {
  [key: string]: Shape | 'string';
}

const content: Shape = { uri: 'string', resource: { uri: 'string' } };

/** Where the results of these methods name resources by URI. */
const uriShapes: Record<string, Shape> = {
  'tools/call': { result: { content: { each: content } } },
  'prompts/get': { result: { messages: { each: { content: { ...content, each: content } } } } },
  'resources/read': { result: { contents: { each: { uri: 'string' } } } },
};

/** A result of tools/call or prompts/get holds a URI only beside one of the content types that begin like this. */
const resourceMark = Buffer.from('"resource');

export function mayHoldUris(method: string, result: Chunks): boolean {
  if (method === 'resources/read') return true;
  return method in uriShapes && includes(result, resourceMark);
}

export function resultUriSpans(method: string, bytes: Buffer): Span[] {
  const shape = uriShapes[method];
  return shape === undefined ? [] : stringSpans(bytes, shape).map(({ span }) => span);
}

type Wanted = Shape | 'string' | undefined;

export interface FoundString {
  key: string;
  span: Span;
}

/** Every string of the message that the shape asks for, with the key that it stands under. */
export function stringSpans(bytes: Buffer, shape: Shape): FoundString[] {
  const found: FoundString[] = [];
  const scanner = new JsonScanner(bytes);
  walk(scanner, shape, '', found);
  return found;
}

function walk(scanner: JsonScanner, wanted: Wanted, name: string, found: FoundString[]): void {
  const first = scanner.peek();
  if (wanted === 'string' && first === 0x22) {
    found.push({ key: name, span: scanner.span() });
  } else if (typeof wanted === 'object' && first === 0x7b) {
    scanner.object((start, end, escaped) => {
      const raw = Buffer.from(scanner.bytes.buffer, scanner.bytes.byteOffset + start, end - start).toString();
      const key = escaped ? (JSON.parse(`"${raw}"`) as string) : raw;
      const isWanted = key !== 'each' && Object.hasOwn(wanted, key);
      walk(scanner, isWanted ? wanted[key] : undefined, key, found);
    });
  } else if (typeof wanted === 'object' && first === 0x5b && wanted.each !== undefined) {
    scanner.array(() => walk(scanner, wanted.each, 'each', found));
  } else {
    scanner.skip(0);
  }
}
