import { JsonScanner, type Span } from './json-scanner.ts';

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

export function mayHoldUris(method: string, chunk: Buffer): boolean {
  if (method === 'resources/read') return true;
  return method in uriShapes && chunk.includes(resourceMark);
}

export function resultUriSpans(method: string, bytes: Buffer): Span[] {
  const shape = uriShapes[method];
  return shape === undefined ? [] : stringSpans(bytes, shape).map(({ span }) => span);
}

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

function walk(scanner: JsonScanner, wanted: Shape | 'string' | undefined, key: string, found: FoundString[]): void {
  const first = scanner.peek();
  if (wanted === 'string' && first === 0x22) {
    found.push({ key, span: scanner.span() });
  } else if (typeof wanted === 'object' && first === 0x7b) {
    scanner.object((start, end) => {
      const member = Buffer.from(scanner.bytes.buffer, scanner.bytes.byteOffset + start, end - start).toString();
      walk(scanner, member === 'each' ? undefined : wanted[member], member, found);
    });
  } else if (typeof wanted === 'object' && first === 0x5b && wanted.each !== undefined) {
    scanner.array(() => walk(scanner, wanted.each, 'each', found));
  } else {
    scanner.skip(0);
  }
}
