import type { Claims } from './message.ts';

/** The keys of an object that we read. Recognizes other spellings that some parsers treat as the same key. */
export class KnownKeys {
  private readonly keys: ReadonlySet<string>;
  private readonly byFolded: ReadonlyMap<string, string>;

  constructor(keys: readonly string[]) {
    this.keys = new Set(keys);
    this.byFolded = new Map(keys.map((key) => [folded(key), key]));
  }

  has(key: string): boolean {
    return this.keys.has(key);
  }

  /** The known key that differs from this one only in case. */
  meantBy(key: string): string | undefined {
    return this.byFolded.get(folded(key));
  }
}

export const messageKeys = new KnownKeys(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
export const paramsKeys = new KnownKeys([
  'name',
  'uri',
  'ref',
  'requestId',
  'progressToken',
  'task',
  'taskId',
  'inputResponses',
  'requestState',
  '_meta',
]);
export const metaKeys = new KnownKeys(['progressToken', 'projectId', 'project_id']);
export const referenceKeys = new KnownKeys(['type', 'name', 'uri']);

const callOptionPrefix = Buffer.from('dev.switchboard/');

/** Compares bytes without building a string, because it runs for every message with a `_meta`. */
export function isCallOptionKey(bytes: Buffer, start: number, end: number): boolean {
  return beginsWith(bytes, start, end, callOptionPrefix);
}

const protocolPrefix = Buffer.from('io.modelcontextprotocol/');

/** The part after the prefix of the protocol's keys in `_meta`; undefined for other keys. */
export function protocolKey(bytes: Buffer, start: number, end: number): string | undefined {
  if (!beginsWith(bytes, start, end, protocolPrefix)) return undefined;
  return bytes.toString('latin1', start + protocolPrefix.length, end);
}

function beginsWith(bytes: Buffer, start: number, end: number, prefix: Buffer): boolean {
  if (end - start <= prefix.length) return false;
  for (let index = 0; index < prefix.length; index++) {
    if (bytes[start + index] !== prefix[index]) return false;
  }
  return true;
}

const claimKeys: ReadonlySet<unknown> = new Set([
  'protocolVersion',
  'clientCapabilities',
  'clientInfo',
  'logLevel',
  'subscriptionId',
]);

export function isClaim(key: string | undefined): key is keyof Claims {
  return claimKeys.has(key);
}

/** In bytes, however the key is spelled: `k` and `s` have case variants of three and two bytes. */
export const LONGEST_KEY = 17;

// Converts twice, because some letters have a variant in only one direction: `ſ` becomes `S`.
function folded(key: string): string {
  return key.toUpperCase().toLowerCase();
}
