import type { Claims } from './message.ts';

/** The keys of one object that we read, and the ways to misspell them that some parsers take for the same key. */
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

  /** The key that this one would be, were it not for its case. */
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

/** Whether a key of `_meta` is for us: compared byte by byte, because it is looked at in every message with a `_meta`. */
export function isCallOptionKey(bytes: Buffer, start: number, end: number): boolean {
  return beginsWith(bytes, start, end, callOptionPrefix);
}

const protocolPrefix = Buffer.from('io.modelcontextprotocol/');

/** What follows the prefix of the protocol's own keys of `_meta`; undefined where the key is none of these. */
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

/** Nothing longer in bytes is one of them, however it is spelled: `k` and `s` have relatives of three and two bytes. */
export const LONGEST_KEY = 17;

// Both ways, because there are letters that meet others in only one of the cases: `ſ` is an upper-case `S`.
function folded(key: string): string {
  return key.toUpperCase().toLowerCase();
}
