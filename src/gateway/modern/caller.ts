import { SwitchboardError } from '../../errors.ts';
import type { Principal } from '../../identity/principal.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { bytesAt, type Claim, type Message } from '../../protocol/message.ts';
import { modernVersion, protocolVersions } from '../../protocol/versions.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Client } from '../../upstreams/request.ts';
import type { Caller, ClientFacts } from '../caller.ts';
import { isLevel, isWanted, levels } from '../logging.ts';
import type { InFlight } from '../responder.ts';
import { type KnownClient, ownedName } from './known-clients.ts';

/** A modern client for the duration of one request, which contains everything known about it. */
export class ModernCaller implements Caller {
  readonly era = 'modern';
  readonly identity: Client;
  readonly name: string;
  readonly facts: ClientFacts;
  readonly principal: Principal;
  readonly sender = undefined;
  readonly serverRequests = undefined;
  readonly listedAt = undefined;
  readonly isFull = false;
  private readonly logLevel: string | undefined;
  private readonly known: KnownClient | undefined;
  private request: InFlight | undefined;
  private readonly inFlight: Set<ModernCaller>;
  private readonly onIdle: () => void;
  private isGone = false;

  /** `known` is set if the client gave a name. */
  constructor(
    { claims = {}, bytes }: Message,
    principal: Principal,
    name: string,
    known: KnownClient | undefined,
    inFlight: Set<ModernCaller>,
    onIdle: () => void,
  ) {
    this.principal = principal;
    this.facts = new StatedFacts(name, bytes, claims.clientCapabilities!);
    this.logLevel = levelIn(bytes, claims.logLevel);
    this.known = known;
    this.identity = known ?? this;
    this.name = known?.key ?? ownedName(principal, name);
    this.inFlight = inFlight;
    this.onIdle = onIdle;
  }

  begin(request: InFlight): boolean {
    if (this.isGone) return false;
    if (this.known !== undefined && this.request === undefined) this.known.inFlight++;
    this.request = request;
    this.inFlight.add(this);
    return true;
  }

  finish(request: InFlight): boolean {
    if (this.request !== request) return false;
    this.request = undefined;
    this.inFlight.delete(this);
    if (this.inFlight.size === 0) this.onIdle();
    if (this.known !== undefined) {
      this.known.inFlight--;
      this.known.lastSeen = Date.now();
    }
    return true;
  }

  listed(): void {}

  /** It has nothing else in flight. */
  awaitsOthersThan(_group: Group): boolean {
    return false;
  }

  /** A request without a level gets no log messages. */
  wantsLog(message: Message): boolean {
    return this.logLevel !== undefined && isWanted(message, this.logLevel);
  }

  get wantedLogLevel(): string | undefined {
    return this.logLevel;
  }

  get current(): InFlight | undefined {
    return this.request;
  }

  keepAlive(): void {
    this.request?.responder.keepAlive();
  }

  /** Closing the connection cancels the request. */
  leave(): void {
    this.isGone = true;
    this.request?.cancel('The client has gone.');
  }
}

/** Parsed on demand, because most requests are forwarded without a look at the client's capabilities. */
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

/** Returns the protocol version. Throws if the description of the sender is invalid. */
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
    `params._meta["io.modelcontextprotocol/${key}"] is missing: protocol ${modernVersion} requires it in every request.`,
  );
}

function wrongKey(key: string, wanted: string): SwitchboardError {
  return new SwitchboardError(
    'invalid_params',
    `params._meta["io.modelcontextprotocol/${key}"] must be ${wanted}.`,
  );
}
