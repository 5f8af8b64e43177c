import { digits, isDigit, isHexDigit, isPlain, isPlainWord } from './json-bytes.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
export const MAX_DEPTH = 512;
/** Most strings end before a word-wise search pays off. */
const NEAR_BYTES = 32;

/** A range of bytes: start inclusive, end exclusive. */
export interface Span {
  start: number;
  end: number;
}

/** The ends of values, by their starts. */
export type Passed = ReadonlyMap<number, number>;

/** The text is not JSON; `at` is the offending byte. */
export class JsonSyntaxError extends Error {
  readonly at: number;

  constructor(problem: string, at: number) {
    super(`${problem} at byte ${at}`);
    this.at = at;
  }
}

/**
 * Scans JSON bytes without building values. Accepts exactly RFC 8259, so that every other parser reads the same values
 * as we do.
 */
export class JsonScanner {
  readonly bytes: Uint8Array;
  readonly end: number;
  at: number;
  /** Whether the last string contains an escape, so that its bytes differ from its characters. */
  escaped = false;
  /** Values that were checked before, and are skipped. */
  private readonly passed: Passed | undefined;
  private words: Int32Array | undefined;

  constructor(bytes: Uint8Array, at = 0, passed?: Passed) {
    this.bytes = bytes;
    this.end = bytes.length;
    this.at = at;
    this.passed = passed;
  }

  fail(problem: string): never {
    throw new JsonSyntaxError(problem, this.at);
  }

  /** Skips white space and returns the next byte, or -1 at the end. */
  peek(): number {
    const { bytes, end } = this;
    let at = this.at;
    while (at < end) {
      const byte = bytes[at]!;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) {
        this.at = at;
        return byte;
      }
      at++;
    }
    this.at = at;
    return -1;
  }

  expectEnd(): void {
    if (this.peek() !== -1) this.fail('unexpected text after the value');
  }

  /** Calls `member` at each value; it must consume the value. */
  object(member: (keyStart: number, keyEnd: number, keyEscaped: boolean) => void): void {
    if (this.peek() !== 0x7b) this.fail('expected an object');
    this.at++;
    if (this.peek() === 0x7d) {
      this.at++;
      return;
    }
    for (;;) {
      if (this.peek() !== QUOTE) this.fail('expected a key');
      const keyStart = this.at + 1;
      this.string();
      const keyEnd = this.at - 1;
      const keyEscaped = this.escaped;
      if (this.peek() !== COLON) this.fail("expected ':'");
      this.at++;
      member(keyStart, keyEnd, keyEscaped);
      const next = this.peek();
      this.at++;
      if (next === COMMA) continue;
      if (next === 0x7d) return;
      this.at--;
      this.fail("expected ',' or '}'");
    }
  }

  /** Calls `element` at each element; it must consume the element. */
  array(element: () => void): void {
    if (this.peek() !== 0x5b) this.fail('expected an array');
    this.at++;
    if (this.peek() === 0x5d) {
      this.at++;
      return;
    }
    for (;;) {
      this.peek();
      element();
      const next = this.peek();
      this.at++;
      if (next === COMMA) continue;
      if (next === 0x5d) return;
      this.at--;
      this.fail("expected ',' or ']'");
    }
  }

  /** Skips one value and returns its range. */
  span(): Span {
    this.peek();
    const start = this.at;
    this.skip(0);
    return { start, end: this.at };
  }

  skip(depth: number): void {
    const byte = this.peek();
    const end = this.passed?.get(this.at);
    if (end !== undefined) {
      this.at = end;
      return;
    }
    switch (byte) {
      case QUOTE:
        this.string();
        return;
      case 0x7b:
      case 0x5b:
        this.skipContainer(byte === 0x7b, depth + 1);
        return;
      case 0x74:
        this.literal('true');
        return;
      case 0x66:
        this.literal('false');
        return;
      case 0x6e:
        this.literal('null');
        return;
      default:
        this.number(byte);
    }
  }

  private skipContainer(isObject: boolean, depth: number): void {
    if (depth > MAX_DEPTH) this.fail(`nested deeper than ${MAX_DEPTH} levels`);
    const close = isObject ? 0x7d : 0x5d;
    this.at++;
    if (this.peek() === close) {
      this.at++;
      return;
    }
    for (;;) {
      if (isObject) {
        if (this.peek() !== QUOTE) this.fail('expected a key');
        this.string();
        if (this.peek() !== COLON) this.fail("expected ':'");
        this.at++;
      }
      this.skip(depth);
      const next = this.peek();
      if (next === COMMA) {
        this.at++;
        continue;
      }
      if (next === close) {
        this.at++;
        return;
      }
      this.fail(isObject ? "expected ',' or '}'" : "expected ',' or ']'");
    }
  }

  /** Skips a string, from its opening quote. */
  string(): void {
    if (!this.beginString(this.end)) this.fail('unterminated string');
  }

  /** The same up to `stop`. Returns whether the string has ended. */
  beginString(stop: number): boolean {
    this.at++;
    this.escaped = false;
    return this.restOfString(stop);
  }

  restOfString(stop: number): boolean {
    const { bytes } = this;
    let at = this.at;
    let near = at + NEAR_BYTES;
    while (at < stop) {
      if (at >= near) {
        at = this.plain(at, stop);
        near = at + NEAR_BYTES;
        if (at >= stop) break;
      }
      const byte = bytes[at]!;
      if (byte === QUOTE) {
        this.at = at + 1;
        return true;
      }
      if (byte === BACKSLASH) {
        this.escaped = true;
        at = this.escape(at);
      } else if (byte < 0x20) {
        this.at = at;
        this.fail('control character in a string');
      } else {
        at++;
      }
    }
    this.at = at;
    return false;
  }

  /** Skips unescaped characters, four bytes at a time. */
  private plain(from: number, stop: number): number {
    const { buffer, byteOffset, length } = this.bytes;
    const first = (byteOffset + 3) & ~3;
    this.words ??= new Int32Array(buffer, first, Math.max(0, (byteOffset + length - first) >> 2));
    const { words } = this;
    const count = Math.min(words.length, (byteOffset + stop - first) >> 2);
    let index = (byteOffset + from - first + 3) >> 2;
    // Bytes before the first aligned word.
    const start = first + index * 4 - byteOffset;
    for (let at = from; at < start; at++) if (!isPlain(this.bytes[at])) return at;
    while (index < count && isPlainWord(words[index]!)) index++;
    return Math.max(start, first + index * 4 - byteOffset);
  }

  private escape(at: number): number {
    switch (this.bytes[at + 1]) {
      case QUOTE:
      case BACKSLASH:
      case 0x2f:
      case 0x62:
      case 0x66:
      case 0x6e:
      case 0x72:
      case 0x74:
        return at + 2;
      case 0x75:
        for (let digit = at + 2; digit < at + 6; digit++) {
          if (!isHexDigit(this.bytes[digit])) {
            this.at = at;
            this.fail('bad \\u escape');
          }
        }
        return at + 6;
      default:
        this.at = at;
        return this.fail('bad escape');
    }
  }

  private number(first: number): void {
    const { bytes } = this;
    let at = this.at;
    if (first === 0x2d) at++;
    const leading = bytes[at];
    if (leading === 0x30) at++;
    else if (isDigit(leading)) at = digits(bytes, at);
    else this.fail(first === -1 ? 'unexpected end' : 'unexpected character');
    if (bytes[at] === 0x2e) {
      if (!isDigit(bytes[at + 1])) this.fail('bad number');
      at = digits(bytes, at + 1);
    }
    const exponent = bytes[at];
    if (exponent === 0x65 || exponent === 0x45) {
      const sign = bytes[at + 1];
      at += sign === 0x2b || sign === 0x2d ? 2 : 1;
      if (!isDigit(bytes[at])) this.fail('bad number');
      at = digits(bytes, at);
    }
    this.at = at;
  }

  private literal(word: string): void {
    for (let index = 0; index < word.length; index++) {
      if (this.bytes[this.at + index] !== word.charCodeAt(index)) this.fail('unexpected character');
    }
    this.at += word.length;
  }
}
