import { isUtf8 } from 'node:buffer';
import { SwitchboardError } from '../errors.ts';
import {
  isWishKey,
  type KnownKeys,
  LONGEST_KEY,
  messageKeys,
  metaKeys,
  paramsKeys,
  protocolKey,
  referenceKeys,
} from './envelope-keys.ts';
import { JsonScanner, JsonSyntaxError, type Passed, type Span } from './json-scanner.ts';
import type { RequestId } from './jsonrpc.ts';
import { parseLossless } from './lossless.ts';
import { checkLength, MAX_ID_BYTES, MAX_TASK_ID_BYTES, MAX_URI_BYTES } from './scalar-limits.ts';

/** More than any client sends at once: each entry costs far more than its bytes. */
const MAX_BATCH = 1_000;
/** More than any message has in itself, in its params or in their `_meta`: each one is looked at. */
const MAX_MEMBERS = 10_000;
/** What is rebuilt is parsed in one go. */
const MAX_REBUILT_BYTES = 1024 * 1024;

type MessageKind = 'request' | 'notification' | 'result' | 'error';

/** One JSON-RPC message: its bytes as they travel, and where in them the parts stand that routing needs. */
export interface Message {
  bytes: Buffer;
  kind: MessageKind;
  /** Empty for answers. */
  method: string;
  id: RequestId | undefined;
  idSpan: Span | undefined;
  params: Span | undefined;
  /** `params.name` and `params.uri`, where they are strings: span with the quotes, and the decoded value. */
  name: Routed | undefined;
  uri: Routed | undefined;
  /** What a completion is asked for. */
  reference: Reference | undefined;
  /** `params.task`: the sender of this call wants it done as a task. `params.taskId`: the task that this is about. */
  task: Span | undefined;
  taskId: Routed | undefined;
  /** `params.requestId` (of a cancellation) and `params.progressToken` (of progress). */
  requestId: Span | undefined;
  progressToken: Span | undefined;
  /** `params._meta.progressToken`: the sender of this request wants progress under this token. */
  wantedProgress: Span | undefined;
  /** `params._meta.projectId` or `project_id`: the project that the request is about. */
  projectId: Routed | undefined;
  /** `params.inputResponses` and `params.requestState`: what the sender was asked for by the answer to an earlier request. */
  inputResponses: Span | undefined;
  requestState: Span | undefined;
  /** `params._meta`, whatever it is. */
  meta: Span | undefined;
  /** What `params._meta` says under the protocol's own keys. */
  claims: Claims | undefined;
  /** The result of an answer. */
  result: Span | undefined;
  /** `params._meta`, where it has something in it that the sender wants of us: keys that start with `dev.switchboard/`. */
  wishes: Span | undefined;
}

/** The protocol's own keys of `_meta`: what a request of the modern era says of its sender, and whose subscription it is. */
export interface Claims {
  protocolVersion?: Claim;
  clientCapabilities?: Claim;
  clientInfo?: Claim;
  logLevel?: Claim;
  subscriptionId?: Claim;
}

const claimKeys: ReadonlySet<unknown> = new Set([
  'protocolVersion',
  'clientCapabilities',
  'clientInfo',
  'logLevel',
  'subscriptionId',
]);

function isClaim(key: string | undefined): key is keyof Claims {
  return claimKeys.has(key);
}

/** One member of `_meta`: the whole of it, key and all, and its value. */
export interface Claim extends Span {
  value: Span;
}

export interface Routed extends Span {
  value: string;
}

/** The strings of `params.ref`. */
interface Reference {
  type: Routed | undefined;
  name: Routed | undefined;
  uri: Routed | undefined;
}

/**
 * Reads one message. Where two parsers could read two things out of the same bytes (a key twice, a key spelled
 * with escapes), the message is rebuilt so that there is only one reading left, and that one is used. `passed` is given
 * where all of the text was checked before.
 */
export function readMessage(bytes: Buffer, passed?: Passed): Message {
  if (passed === undefined && !isUtf8(bytes))
    throw new SwitchboardError('parse_error', 'The message is not valid UTF-8.');
  try {
    return new EnvelopeReader(bytes, passed).read() ?? readRebuilt(bytes);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new SwitchboardError('parse_error', `The message is not valid JSON: ${error.message}.`);
  }
}

/** The messages of a JSON-RPC batch, or undefined when the bytes are not an array. */
export function splitBatch(bytes: Buffer): Buffer[] | undefined {
  const scanner = new JsonScanner(bytes);
  if (scanner.peek() !== 0x5b) return undefined;
  const items: Buffer[] = [];
  try {
    scanner.array(() => {
      if (items.length === MAX_BATCH)
        throw new SwitchboardError(
          'invalid_request',
          `The batch has more than ${MAX_BATCH} messages: send several smaller ones.`,
        );
      const { start, end } = scanner.span();
      items.push(bytes.subarray(start, end));
    });
    scanner.expectEnd();
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new SwitchboardError('parse_error', `The batch is not valid JSON: ${error.message}.`);
  }
  return items;
}

/** The value of a JSON-RPC id, or undefined where it is none that MCP allows, or longer than we take. */
export function idValue(bytes: Buffer, span: Span): RequestId | undefined {
  if (span.end - span.start > MAX_ID_BYTES) return undefined;
  const text = bytes.toString('utf8', span.start, span.end);
  if (text.charCodeAt(0) === 0x22) return JSON.parse(text) as string;
  const number = Number(text);
  if (Number.isSafeInteger(number)) return number;
  return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
}

export function bytesAt(bytes: Buffer, span: Span): Buffer {
  return bytes.subarray(span.start, span.end);
}

/** The id of a request as it was written. */
export function idBytes({ bytes, idSpan }: Message): Buffer {
  return bytesAt(bytes, idSpan!);
}

function readRebuilt(bytes: Buffer): Message {
  if (bytes.length > MAX_REBUILT_BYTES)
    throw new SwitchboardError(
      'invalid_request',
      `The message has keys that are there twice or are written with escapes, which is taken up to ${MAX_REBUILT_BYTES} bytes only.`,
    );
  const rebuilt = Buffer.from(JSON.stringify(parseLossless(bytes.toString())));
  const message = new EnvelopeReader(rebuilt).read();
  if (message === undefined) throw new SwitchboardError('invalid_request', 'The message has ambiguous keys.');
  return message;
}

/** One pass over a message. `read` gives undefined when the keys are ambiguous. */
class EnvelopeReader {
  private readonly bytes: Buffer;
  private readonly scanner: JsonScanner;
  private ambiguous = false;
  private members = 0;
  /** Set where a key equals a known one but for its case: some servers' parsers do not tell them apart. */
  private misspelling: { written: string; meant: string } | undefined;
  private version: Span | undefined;
  private method: Span | undefined;
  private id: Span | undefined;
  private params: Span | undefined;
  private result: Span | undefined;
  private error: Span | undefined;
  private name: Span | undefined;
  private uri: Span | undefined;
  private reference: { type?: Span; name?: Span; uri?: Span } | undefined;
  private task: Span | undefined;
  private taskId: Span | undefined;
  private requestId: Span | undefined;
  private progressToken: Span | undefined;
  private inputResponses: Span | undefined;
  private requestState: Span | undefined;
  private metaSpan: Span | undefined;
  private claims: Claims | undefined;
  private wantedProgress: Span | undefined;
  private projectId: Span | undefined;
  private hasWishes = false;
  private wishes: Span | undefined;

  constructor(bytes: Buffer, passed?: Passed) {
    this.bytes = bytes;
    this.scanner = new JsonScanner(bytes, 0, passed);
  }

  read(): Message | undefined {
    const { scanner } = this;
    if (scanner.peek() !== 0x7b) {
      // A batch where none is taken need not be read to be refused, however long it is.
      if (scanner.peek() !== 0x5b) {
        scanner.skip(0);
        scanner.expectEnd();
      }
      throw new SwitchboardError('invalid_request', 'A JSON-RPC message is an object.');
    }
    scanner.object((start, end, escaped) => this.topMember(start, end, escaped));
    scanner.expectEnd();
    return this.ambiguous ? undefined : this.message();
  }

  private topMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    switch (this.key(start, end, messageKeys)) {
      case 'id':
        this.id = this.once(this.id);
        return;
      case 'jsonrpc':
        this.version = this.once(this.version);
        return;
      case 'method':
        this.method = this.once(this.method);
        return;
      case 'result':
        this.result = this.once(this.result);
        return;
      case 'error':
        this.error = this.once(this.error);
        return;
      case 'params': {
        if (this.params !== undefined) this.ambiguous = true;
        const isObject = this.scanner.peek() === 0x7b;
        const from = this.scanner.at;
        if (isObject) this.scanner.object((s, e, k) => this.paramsMember(s, e, k));
        else this.scanner.skip(0);
        this.params = { start: from, end: this.scanner.at };
        return;
      }
      default:
        this.scanner.skip(0);
    }
  }

  private paramsMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    switch (this.key(start, end, paramsKeys)) {
      case 'name':
        this.name = this.once(this.name);
        return;
      case 'uri':
        this.uri = this.once(this.uri);
        return;
      case 'ref':
        if (this.reference !== undefined) this.ambiguous = true;
        this.reference = {};
        if (this.scanner.peek() === 0x7b) this.scanner.object((s, e, k) => this.referenceMember(s, e, k));
        else this.scanner.skip(1);
        return;
      case 'task':
        this.task = this.once(this.task);
        return;
      case 'taskId':
        this.taskId = this.once(this.taskId);
        return;
      case 'requestId':
        this.requestId = this.once(this.requestId);
        return;
      case 'progressToken':
        this.progressToken = this.once(this.progressToken);
        return;
      case 'inputResponses':
        this.inputResponses = this.once(this.inputResponses);
        return;
      case 'requestState':
        this.requestState = this.once(this.requestState);
        return;
      case '_meta':
        if (this.metaSpan !== undefined) this.ambiguous = true;
        this.meta();
        return;
      default:
        this.scanner.skip(1);
    }
  }

  private meta(): void {
    const { scanner } = this;
    if (scanner.peek() !== 0x7b) {
      this.metaSpan = scanner.span();
      return;
    }
    const start = scanner.at;
    scanner.object((s, e, k) => this.metaMember(s, e, k));
    this.metaSpan = { start, end: scanner.at };
    if (this.hasWishes) this.wishes = this.metaSpan;
  }

  private metaMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    switch (this.key(start, end, metaKeys)) {
      case 'progressToken':
        this.wantedProgress = this.once(this.wantedProgress);
        return;
      case 'projectId':
      case 'project_id':
        this.projectId = this.once(this.projectId);
        return;
      default:
        if (isWishKey(this.bytes, start, end)) this.hasWishes = true;
        this.claim(start, end);
    }
  }

  private claim(start: number, end: number): void {
    const key = protocolKey(this.bytes, start, end);
    if (!isClaim(key)) {
      this.scanner.skip(2);
      return;
    }
    this.claims ??= {};
    const value = this.once(this.claims[key]);
    // With the quote before the key.
    this.claims[key] = { start: start - 1, end: value.end, value };
  }

  private referenceMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    const reference = this.reference!;
    const key = this.key(start, end, referenceKeys);
    if (key === 'type' || key === 'name' || key === 'uri') reference[key] = this.once(reference[key]);
    else this.scanner.skip(2);
  }

  /** The key where it is one of the known ones, else an empty string; long keys never become strings. */
  private key(start: number, end: number, known: KnownKeys): string {
    const length = end - start;
    if (++this.members > MAX_MEMBERS)
      throw new SwitchboardError('invalid_request', `The message has more than ${MAX_MEMBERS} members.`);
    if (length < 2 || length > LONGEST_KEY) return '';
    const key = this.bytes.toString('latin1', start, end);
    if (known.has(key)) return key;
    const written = this.bytes.toString('utf8', start, end);
    const meant = known.meantBy(written);
    if (meant !== undefined) this.misspelling = { written, meant };
    return '';
  }

  private once(before: Span | undefined): Span {
    if (before !== undefined) this.ambiguous = true;
    return this.scanner.span();
  }

  /** The string at this place, or undefined where something else stands there. */
  private routed(span: Span | undefined): Routed | undefined {
    if (span === undefined || this.bytes[span.start] !== 0x22) return undefined;
    const text = this.bytes.toString('utf8', span.start + 1, span.end - 1);
    const value = text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
    return { start: span.start, end: span.end, value };
  }

  private message(): Message {
    const { bytes, version, misspelling, reference } = this;
    if (version === undefined || bytes.toString('latin1', version.start, version.end) !== '"2.0"') {
      throw new SwitchboardError('invalid_request', 'A JSON-RPC message has "jsonrpc": "2.0".');
    }
    if (misspelling !== undefined) {
      const { written, meant } = misspelling;
      throw new SwitchboardError('invalid_request', `The key "${written}" is misspelled: it is "${meant}".`);
    }
    if (this.projectId !== undefined && bytes[this.projectId.start] !== 0x22) {
      throw new SwitchboardError('invalid_request', 'The projectId in _meta is a string.');
    }
    this.checkLengths();
    const id = this.id === undefined ? undefined : idValue(bytes, this.id);
    const kind = this.kind(id);
    return {
      bytes,
      kind,
      method:
        this.method === undefined
          ? ''
          : (JSON.parse(bytes.toString('utf8', this.method.start, this.method.end)) as string),
      id,
      idSpan: this.id,
      params: this.params,
      name: this.routed(this.name),
      uri: this.routed(this.uri),
      reference: reference && {
        type: this.routed(reference.type),
        name: this.routed(reference.name),
        uri: this.routed(reference.uri),
      },
      task: this.task,
      taskId: this.routed(this.taskId),
      requestId: this.requestId,
      progressToken: this.progressToken,
      wantedProgress: this.wantedProgress,
      projectId: this.routed(this.projectId),
      inputResponses: this.inputResponses,
      requestState: this.requestState,
      meta: this.metaSpan,
      claims: this.claims,
      result: this.result,
      wishes: this.wishes,
    };
  }

  private checkLengths(): void {
    checkLength(this.id, MAX_ID_BYTES, 'id');
    checkLength(this.method, MAX_ID_BYTES, 'method');
    checkLength(this.name, MAX_ID_BYTES, 'name');
    checkLength(this.uri, MAX_URI_BYTES, 'URI');
    checkLength(this.reference?.type, MAX_ID_BYTES, 'type of the reference');
    checkLength(this.reference?.name, MAX_ID_BYTES, 'name of the reference');
    checkLength(this.reference?.uri, MAX_URI_BYTES, 'URI of the reference');
    checkLength(this.taskId, MAX_TASK_ID_BYTES, 'taskId');
    checkLength(this.requestId, MAX_ID_BYTES, 'requestId');
    checkLength(this.progressToken, MAX_ID_BYTES, 'progressToken');
    checkLength(this.wantedProgress, MAX_ID_BYTES, 'progressToken in _meta');
    checkLength(this.projectId, MAX_ID_BYTES, 'projectId in _meta');
    checkLength(this.claims?.subscriptionId?.value, MAX_ID_BYTES, 'subscriptionId in _meta');
  }

  private kind(id: RequestId | undefined): MessageKind {
    const isAnswer = this.result !== undefined || this.error !== undefined;
    if (this.method !== undefined) {
      if (isAnswer)
        throw new SwitchboardError('invalid_request', 'A message is a request or an answer, not both.');
      if (this.bytes[this.method.start] !== 0x22) {
        throw new SwitchboardError('invalid_request', 'The method is a string.');
      }
      if (this.params !== undefined && this.bytes[this.params.start] !== 0x7b) {
        throw new SwitchboardError('invalid_request', 'The params are an object.');
      }
      if (this.id === undefined) return 'notification';
      if (id === undefined)
        throw new SwitchboardError('invalid_request', 'The id is a string or an integer.');
      return 'request';
    }
    if (!isAnswer)
      throw new SwitchboardError('invalid_request', 'A message has a method, a result or an error.');
    if (this.result !== undefined && this.error !== undefined) {
      throw new SwitchboardError('invalid_request', 'An answer has a result or an error, not both.');
    }
    return this.result === undefined ? 'error' : 'result';
  }
}
