/** A place in a text, counted from 1 as editors do. */
interface Place {
  line: number;
  column: number;
}

export class JsonSyntaxError extends Error {
  readonly place: Place;

  constructor(message: string, place: Place) {
    super(message);
    this.name = 'JsonSyntaxError';
    this.place = place;
  }
}

interface ParsedJson {
  value: unknown;
  /** Keys that an object has more than once; as everywhere, the last one counts. */
  repeated: { path: (string | number)[]; place: Place }[];
}

const maxDepth = 100;
/** Nobody reads more of them, and to find a place takes time in proportion to the text. */
const maxRepeated = 100;
// Each is a part that is taken as often as it is there: alternatives under a * would take up the engine's stack.
const blank = /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\//y;
const stringPart = /[^"\\\n]+|\\./y;
const wordToken = /[-+.\w]+/y;

/**
 * Reads JSON that may have comments and trailing commas, as editors write it. JSON.parse takes neither, does not always
 * say where an error is, and loses repeated keys silently, which here would be a lost server.
 */
export function parseJson(text: string): ParsedJson {
  let position = 0;
  const repeated: ParsedJson['repeated'] = [];

  const value = readValue([]);
  skipBlank();
  if (position < text.length) fail('there is something after the end of the JSON value');
  return { value, repeated };

  function readValue(path: (string | number)[]): unknown {
    skipBlank();
    if (path.length > maxDepth) fail(`nested deeper than ${maxDepth} levels`);
    const start = text[position];
    if (start === '{') return readObject(path);
    if (start === '[') return readArray(path);
    if (start === '"') return readString();
    return readWord();
  }

  function readObject(path: (string | number)[]): unknown {
    const entries = new Map<string, unknown>();
    position += 1;
    while (!atEnd('}')) {
      const start = position;
      if (text[position] !== '"') fail(expected('a key in double quotes or "}"'));
      const key = readString();
      if (entries.has(key) && repeated.length < maxRepeated) {
        repeated.push({ path: [...path, key], place: placeAt(text, start) });
      }
      skipBlank();
      if (text[position] !== ':') fail(expected(`":" after the key ${JSON.stringify(key)}`));
      position += 1;
      entries.set(key, readValue([...path, key]));
      readSeparator('}');
    }
    return Object.fromEntries(entries);
  }

  function readArray(path: (string | number)[]): unknown[] {
    const items: unknown[] = [];
    position += 1;
    while (!atEnd(']')) {
      items.push(readValue([...path, items.length]));
      readSeparator(']');
    }
    return items;
  }

  function readString(): string {
    const start = position;
    position += 1;
    while (skip(stringPart));
    if (text[position] !== '"') {
      position = start;
      fail('the string that starts here does not end on its line');
    }
    position += 1;
    return parseToken(text.slice(start, position));
  }

  function readWord(): unknown {
    const start = position;
    if (!skip(wordToken)) fail(expected('a value'));
    try {
      return JSON.parse(text.slice(start, position));
    } catch {
      position = start;
      return fail('this is not a JSON value; strings stand in double quotes');
    }
  }

  function parseToken(token: string): string {
    try {
      return JSON.parse(token);
    } catch {
      position -= token.length;
      return fail(
        'the string has an escape or a control character that JSON does not allow; a backslash is written \\\\',
      );
    }
  }

  function atEnd(closing: string): boolean {
    skipBlank();
    if (text[position] !== closing) return false;
    position += 1;
    return true;
  }

  function readSeparator(closing: string): void {
    skipBlank();
    if (text[position] === ',') position += 1;
    else if (text[position] !== closing) fail(expected(`"," or "${closing}"`));
  }

  function skipBlank(): void {
    while (skip(blank));
  }

  function skip(part: RegExp): boolean {
    part.lastIndex = position;
    const found = part.test(text);
    if (found) position = part.lastIndex;
    return found;
  }

  function expected(what: string): string {
    const found = text[position];
    return `expected ${what}, found ${found === undefined ? 'the end of the file' : JSON.stringify(found)}`;
  }

  function fail(message: string): never {
    throw new JsonSyntaxError(message, placeAt(text, position));
  }
}

function placeAt(text: string, position: number): Place {
  const before = text.slice(0, position).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}
