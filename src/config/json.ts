import { printParseErrorCode, visit } from 'jsonc-parser';

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
export function parseJson(text: string): ParsedJson {
  const repeated: ParsedJson['repeated'] = [];
  const open: { entries: Map<string | number, unknown>; isArray: boolean; key: string | number }[] = [];
  let root: unknown;
  let isValueDue = true;
  /** Whether the value was read by onError, and the parser still misses it. */
  let isRecovered = false;

  const add = (value: unknown) => {
    isValueDue = false;
    const parent = open.at(-1);
    if (parent === undefined) root = value;
    else parent.entries.set(parent.isArray ? parent.entries.size : parent.key, value);
  };
  const checkValue = (line: number, character: number) => {
    if (isRecovered) throw syntaxError('expected "," before this value', line, character);
    if (open.length > MAX_DEPTH) throw syntaxError(`nested deeper than ${MAX_DEPTH} levels`, line, character);
  };
  const begin = (isArray: boolean) => (_offset: number, _length: number, line: number, character: number) => {
    checkValue(line, character);
    open.push({ entries: new Map(), isArray, key: '' });
    isValueDue = isArray;
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
        checkValue(line, character);
        add(value);
      },
      onSeparator(separator) {
        isValueDue = separator === ':' || open.at(-1)!.isArray;
      },
      onError(code, offset, length, line, character) {
        const found = text.slice(offset, offset + length);
        const name = printParseErrorCode(code);
        // Pasted text often has non-breaking spaces, which are not white space in JSON. The parser joins them with a literal.
        if (found !== '' && found.trim() === '') return;
        if (isRecovered && name === 'ValueExpected') {
          isRecovered = false;
          return;
        }
        if (isValueDue && name === 'InvalidSymbol' && isLiteral(found.trim())) {
          add(JSON.parse(found.trim()));
          isRecovered = true;
          return;
        }
        const closing = open.at(-1)?.isArray ? 'CloseBracketExpected' : 'CloseBraceExpected';
        const message = messageOf(name === 'CommaExpected' ? closing : name, found);
        throw syntaxError(message, line, character);
      },
    },
    { allowTrailingComma: true },
  );
  return { value: root, repeated };
}

function isLiteral(text: string): boolean {
  return /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?)$/.test(text);
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
