import { createScanner, printParseErrorCode, visit } from 'jsonc-parser';

/** Line and column, counted from 1. */
interface Position {
  line: number;
  column: number;
}

export class ConfigSyntaxError extends Error {
  readonly position: Position;

  constructor(message: string, position: Position) {
    super(message);
    this.name = 'JsonSyntaxError';
    this.position = position;
  }
}

type Path = (string | number)[];

interface ParsedJson {
  value: unknown;
  /** Duplicate keys; as in JSON.parse, the last one counts. */
  repeated: { path: Path; position: Position }[];
}

const MAX_DEPTH = 100;
const MAX_REPEATED = 100;

const invalidString = 'the string has an invalid escape or a control character; write a backslash as \\\\';
const messages: Record<string, string> = {
  InvalidSymbol: 'unexpected text; put keys and strings in double quotes',
  EndOfFileExpected: 'there is something after the end of the JSON value',
  UnexpectedEndOfComment: 'the comment that starts here does not end',
  UnexpectedEndOfString: 'the string that starts here does not end on its line',
  InvalidUnicode: invalidString,
  InvalidEscapeCharacter: invalidString,
  InvalidCharacter: invalidString,
};
const expectations: Record<string, string> = {
  PropertyNameExpected: 'a key in double quotes or "}"',
  ColonExpected: '":" after the key',
  CloseBraceExpected: '"," or "}"',
  CloseBracketExpected: '"," or "]"',
};

/** Accepts comments and trailing commas. Reports duplicate keys, which JSON.parse drops silently: one may be a server. */
export function parseJson(source: string): ParsedJson {
  const text = withPlainSpaces(source);
  const repeated: ParsedJson['repeated'] = [];
  const open: { entries: Map<string | number, unknown>; isArray: boolean; key: string | number }[] = [];
  let root: unknown;

  const add = (value: unknown) => {
    const parent = open.at(-1);
    if (parent === undefined) root = value;
    else parent.entries.set(parent.isArray ? parent.entries.size : parent.key, value);
  };
  const checkDepth = (line: number, character: number) => {
    if (open.length > MAX_DEPTH) throw syntaxError(`nested deeper than ${MAX_DEPTH} levels`, line, character);
  };
  const begin = (isArray: boolean) => (_offset: number, _length: number, line: number, character: number) => {
    checkDepth(line, character);
    open.push({ entries: new Map(), isArray, key: '' });
  };
  const end = () => {
    const { entries, isArray } = open.pop()!;
    add(isArray ? [...entries.values()] : Object.fromEntries(entries));
  };
  visit(
    text,
    {
      onObjectBegin: begin(false),
      onObjectEnd: end,
      onArrayBegin: begin(true),
      onArrayEnd: end,
      onObjectProperty(key, _offset, _length, line, character, pathOf) {
        const object = open.at(-1)!;
        object.key = key;
        if (object.entries.has(key) && repeated.length < MAX_REPEATED) {
          repeated.push({ path: [...pathOf(), key], position: positionOf(line, character) });
        }
      },
      onLiteralValue(value, _offset, _length, line, character) {
        checkDepth(line, character);
        add(value);
      },
      onError(code, offset, length, line, character) {
        const found = text.slice(offset, offset + length);
        const name = printParseErrorCode(code);
        const closing = open.at(-1)?.isArray ? 'CloseBracketExpected' : 'CloseBraceExpected';
        const message = messageOf(name === 'CommaExpected' ? closing : name, found);
        throw syntaxError(message, line, character);
      },
    },
    { allowTrailingComma: true },
  );
  return { value: root, repeated };
}

/** Members of jsonc-parser's `SyntaxKind`, a const enum that type stripping cannot import. */
const UNKNOWN_TOKEN = 16;
const END_OF_TEXT = 17;

/** Pasted text often has non-breaking spaces, which are not white space in JSON: they become spaces, except in strings. */
function withPlainSpaces(text: string): string {
  if (!/[^\S \t\r\n]/.test(text)) return text;
  const scanner = createScanner(text);
  let plain = '';
  for (let kind: number = scanner.scan(); kind !== END_OF_TEXT; kind = scanner.scan()) {
    const start = scanner.getTokenOffset();
    const token = text.slice(start, start + scanner.getTokenLength());
    plain += kind === UNKNOWN_TOKEN ? token.replace(/\s/g, ' ') : token;
  }
  return plain;
}

/** Shows at most one character of the input, which may be secret. */
function messageOf(code: string, found: string): string {
  const what = found === '' ? 'the end of the file' : JSON.stringify(found[0]);
  return messages[code] ?? `expected ${expectations[code] ?? 'a value'}, found ${what}`;
}

function syntaxError(message: string, line: number, character: number): ConfigSyntaxError {
  return new ConfigSyntaxError(message, positionOf(line, character));
}

function positionOf(line: number, character: number): Position {
  return { line: line + 1, column: character + 1 };
}
