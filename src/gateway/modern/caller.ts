import { SwitchboardError } from '../../errors.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { bytesAt, type Claim, type Message } from '../../protocol/envelope.ts';
import { modernVersion, protocolVersions } from '../../protocol/versions.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Client } from '../../upstreams/request.ts';
import type { Caller, ClientFacts, InFlight } from '../caller.ts';
import { isLevel, isWanted, levels } from '../logging.ts';
import type { KnownClient } from './known-clients.ts';

/** A client of the modern era, for as long as one request of it takes. All that is known of it stands in that request. */
export class ModernCaller implements Caller {
  readonly era = 'modern';
  readonly identity: Client;
  readonly name: string;
  readonly facts: ClientFacts;
  readonly sender = undefined;
  readonly tasks = undefined;
  readonly listedAt = undefined;
  readonly isFull = false;
  private readonly logLevel: string | undefined;
  private readonly known: KnownClient | undefined;
  private request: InFlight | undefined;
  /** All that have something under way. */
  private readonly underWay: Set<ModernCaller>;
  /** None of them has any more. */
  private readonly idle: () => void;
  private isGone = false;

  /** `known` is the client as which it says that it comes again, if it does. */
  constructor(
    { claims = {}, bytes }: Message,
    name: string,
    known: KnownClient | undefined,
    underWay: Set<ModernCaller>,
    idle: () => void,
  ) {
    this.facts = new StatedFacts(name, bytes, claims.clientCapabilities!);
    this.logLevel = levelIn(bytes, claims.logLevel);
    this.known = known;
    this.identity = known ?? this;
    this.name = known?.key ?? name;
    this.underWay = underWay;
    this.idle = idle;
  }

  begin(request: InFlight): boolean {
    if (this.isGone) return false;
    if (this.known !== undefined && this.request === undefined) this.known.underWay++;
    this.request = request;
    this.underWay.add(this);
    return true;
  }

  finish(request: InFlight): boolean {
    if (this.request !== request) return false;
    this.request = undefined;
    this.underWay.delete(this);
    if (this.underWay.size === 0) this.idle();
    if (this.known !== undefined) {
      this.known.underWay--;
      this.known.lastSeen = Date.now();
    }
    return true;
  }

  listed(): void {}

  /** It has nothing else under way. */
  awaitsOthersThan(_group: Group): boolean {
    return false;
  }

  /** Who does not say how loud a server may be wants it silent. */
  wantsLog(message: Message): boolean {
    return this.logLevel !== undefined && isWanted(message, this.logLevel);
  }

  get wantedLogLevel(): string | undefined {
    return this.logLevel;
  }

  /** What it has under way. */
  get current(): InFlight | undefined {
    return this.request;
  }

  keepAlive(): void {
    this.request?.responder.keepAlive();
  }

  /** The client has closed its connection: that is how it cancels. */
  leave(): void {
    this.isGone = true;
    this.request?.cancel('The client has gone.');
  }
}

/** Most requests are relayed without anybody asking what their clients can do. */
class StatedFacts implements ClientFacts {
  readonly name: string;
  private readonly bytes: Buffer;
  private readonly claim: Claim;

  constructor(name: string, bytes: Buffer, claim: Claim) {
    this.name = name;
    this.bytes = bytes;
    this.claim = claim;
  }

  get capabilities(): Record<string, unknown> {
    return parseBounded(bytesAt(this.bytes, this.claim.value).toString()) as Record<string, unknown>;
  }
}

/** Checks what a request of the modern era has to say of its sender. Gives the protocol version that it names. */
export function checkDescription({ bytes, claims = {} }: Message): string {
  const { protocolVersion: version, clientCapabilities: capabilities, clientInfo } = claims;
  if (version === undefined) throw lacking('protocolVersion');
  if (bytes[version.value.start] !== 0x22) throw wrongKey('protocolVersion', 'a string');
  if (capabilities === undefined) throw lacking('clientCapabilities');
  if (bytes[capabilities.value.start] !== 0x7b) throw wrongKey('clientCapabilities', 'an object');
  if (clientInfo !== undefined && bytes[clientInfo.value.start] !== 0x7b)
    throw wrongKey('clientInfo', 'an object');
  levelIn(bytes, claims.logLevel);
  return parseBounded(bytesAt(bytes, version.value).toString()) as string;
}

export function checkVersion(requested: string): void {
  if (requested === modernVersion) return;
  throw new SwitchboardError('unsupported_version', `Protocol version "${requested}" is not supported.`, {
    data: { supported: [modernVersion, ...protocolVersions], requested },
  });
}

function levelIn(bytes: Buffer, claim: Claim | undefined): string | undefined {
  if (claim === undefined) return undefined;
  const level: unknown = parseBounded(bytesAt(bytes, claim.value).toString());
  if (!isLevel(level)) throw wrongKey('logLevel', `one of ${levels.join(', ')}`);
  return level;
}

function lacking(key: string): SwitchboardError {
  return new SwitchboardError(
    'invalid_params',
    `params._meta["io.modelcontextprotocol/${key}"] is missing: every request of protocol ${modernVersion} has it.`,
  );
}

function wrongKey(key: string, wanted: string): SwitchboardError {
  return new SwitchboardError(
    'invalid_params',
    `params._meta["io.modelcontextprotocol/${key}"] must be ${wanted}.`,
  );
}
