import { SwitchboardError } from '../errors.ts';
import {
  isCallOptionKey,
  isClaim,
  type KnownKeys,
  LONGEST_KEY,
  messageKeys,
  metaKeys,
  paramsKeys,
  protocolKey,
  referenceKeys,
} from './envelope-keys.ts';
import { OPEN_LIST, OPEN_OBJECT, QUOTE } from './json-bytes.ts';
import { JsonScanner, type Passed, type Span } from './json-scanner.ts';
import type { RequestId } from './jsonrpc.ts';
import { type Claims, idValue, type Message, type MessageKind, type StringSpan } from './message.ts';
import { checkLength, MAX_ID_BYTES, MAX_TASK_ID_BYTES, MAX_URI_BYTES } from './scalar-limits.ts';

/** For a message, its params and their `_meta` together: each key is compared. */
const MAX_MEMBERS = 10_000;

/** Reads a message in one pass. `read` returns undefined if its keys are ambiguous. */
export class EnvelopeReader {
  private readonly bytes: Buffer;
  private readonly scanner: JsonScanner;
  private ambiguous = false;
  private members = 0;
  /** A key that differs from a known one only in case: the parsers of some servers do not distinguish them. */
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
  private meta: Span | undefined;
  private claims: Claims | undefined;
  private wantedProgress: Span | undefined;
  private projectId: Span | undefined;
  private hasCallOptions = false;
  private callOptions: Span | undefined;

  constructor(bytes: Buffer, passed?: Passed) {
    this.bytes = bytes;
    this.scanner = new JsonScanner(bytes, 0, passed);
  }

  read(): Message | undefined {
    const { scanner } = this;
    if (scanner.peek() !== OPEN_OBJECT) {
      // A batch is rejected unread, because it may be long.
      if (scanner.peek() !== OPEN_LIST) {
        scanner.skip(0);
        scanner.expectEnd();
      }
      invalid('The message is not a JSON object.');
    }
    scanner.object((start, end, escaped) => this.topMember(start, end, escaped));
    scanner.expectEnd();
    return this.ambiguous ? undefined : this.message();
  }

  private topMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    const key = this.key(start, end, messageKeys);
    if (key === 'id') this.id = this.once(this.id);
    else if (key === 'jsonrpc') this.version = this.once(this.version);
    else if (key === 'method') this.method = this.once(this.method);
    else if (key === 'result') this.result = this.once(this.result);
    else if (key === 'error') this.error = this.once(this.error);
    else if (key === 'params') this.readParams();
    else this.scanner.skip(0);
  }

  private readParams(): void {
    const { scanner } = this;
    if (this.params !== undefined) this.ambiguous = true;
    const isObject = scanner.peek() === OPEN_OBJECT;
    const start = scanner.at;
    if (isObject) scanner.object((s, e, k) => this.paramsMember(s, e, k));
    else scanner.skip(0);
    this.params = { start, end: scanner.at };
  }

  private paramsMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    const key = this.key(start, end, paramsKeys);
    if (key === 'name') this.name = this.once(this.name);
    else if (key === 'uri') this.uri = this.once(this.uri);
    else if (key === 'ref') this.readReference();
    else if (key === 'task') this.task = this.once(this.task);
    else if (key === 'taskId') this.taskId = this.once(this.taskId);
    else if (key === 'requestId') this.requestId = this.once(this.requestId);
    else if (key === 'progressToken') this.progressToken = this.once(this.progressToken);
    else if (key === 'inputResponses') this.inputResponses = this.once(this.inputResponses);
    else if (key === 'requestState') this.requestState = this.once(this.requestState);
    else if (key === '_meta') this.readMeta();
    else this.scanner.skip(1);
  }

  private readReference(): void {
    if (this.reference !== undefined) this.ambiguous = true;
    this.reference = {};
    if (this.scanner.peek() === OPEN_OBJECT) this.scanner.object((s, e, k) => this.referenceMember(s, e, k));
    else this.scanner.skip(1);
  }

  private readMeta(): void {
    const { scanner } = this;
    if (this.meta !== undefined) this.ambiguous = true;
    if (scanner.peek() !== OPEN_OBJECT) {
      this.meta = scanner.span();
      return;
    }
    const start = scanner.at;
    scanner.object((s, e, k) => this.metaMember(s, e, k));
    this.meta = { start, end: scanner.at };
    if (this.hasCallOptions) this.callOptions = this.meta;
  }

  private metaMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    const key = this.key(start, end, metaKeys);
    if (key === 'progressToken') {
      this.wantedProgress = this.once(this.wantedProgress);
    } else if (key === 'projectId' || key === 'project_id') {
      this.projectId = this.once(this.projectId);
    } else {
      if (isCallOptionKey(this.bytes, start, end)) this.hasCallOptions = true;
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
    // Includes the opening quote of the key.
    this.claims[key] = { start: start - 1, end: value.end, value };
  }

  private referenceMember(start: number, end: number, escaped: boolean): void {
    if (escaped) this.ambiguous = true;
    const reference = this.reference!;
    const key = this.key(start, end, referenceKeys);
    if (key === 'type' || key === 'name' || key === 'uri') reference[key] = this.once(reference[key]);
    else this.scanner.skip(2);
  }

  /** A known key, or an empty string for others; long keys never become strings. */
  private key(start: number, end: number, known: KnownKeys): string {
    const length = end - start;
    if (++this.members > MAX_MEMBERS) invalid(`The message has more than ${MAX_MEMBERS} members.`);
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

  /** Undefined if the value is not a string. */
  private string(span: Span | undefined): StringSpan | undefined {
    if (span === undefined || this.bytes[span.start] !== QUOTE) return undefined;
    const text = this.bytes.toString('utf8', span.start + 1, span.end - 1);
    const value = text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
    return { start: span.start, end: span.end, value };
  }

  private message(): Message {
    const { bytes, version, misspelling, reference } = this;
    if (version === undefined || bytes.toString('latin1', version.start, version.end) !== '"2.0"') {
      invalid('The message has no "jsonrpc": "2.0".');
    }
    if (misspelling !== undefined) {
      const { written, meant } = misspelling;
      invalid(`The key "${written}" is misspelled: use "${meant}".`);
    }
    if (this.projectId !== undefined && bytes[this.projectId.start] !== QUOTE) {
      invalid('The projectId in _meta is not a string.');
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
      name: this.string(this.name),
      uri: this.string(this.uri),
      reference: reference && {
        type: this.string(reference.type),
        name: this.string(reference.name),
        uri: this.string(reference.uri),
      },
      task: this.task,
      taskId: this.string(this.taskId),
      requestId: this.requestId,
      progressToken: this.progressToken,
      wantedProgress: this.wantedProgress,
      projectId: this.string(this.projectId),
      inputResponses: this.inputResponses,
      requestState: this.requestState,
      meta: this.meta,
      claims: this.claims,
      result: this.result,
      callOptions: this.callOptions,
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
    const isResponse = this.result !== undefined || this.error !== undefined;
    if (this.method !== undefined) {
      if (isResponse) invalid('The message has both a method and a result or error.');
      if (this.bytes[this.method.start] !== QUOTE) {
        invalid('The method is not a string.');
      }
      if (this.params !== undefined && this.bytes[this.params.start] !== OPEN_OBJECT) {
        invalid('The params are not an object.');
      }
      if (this.id === undefined) return 'notification';
      if (id === undefined) invalid('The id is neither a string nor an integer.');
      return 'request';
    }
    if (!isResponse) invalid('The message has no method, result or error.');
    if (this.result !== undefined && this.error !== undefined) {
      invalid('The response has both a result and an error.');
    }
    return this.result === undefined ? 'error' : 'result';
  }
}

function invalid(problem: string): never {
  throw new SwitchboardError('invalid_request', problem);
}
