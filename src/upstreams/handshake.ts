import { settlesWithin } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import { asObject, inWords } from '../json.ts';
import { instancesIn } from '../protocol/instances.ts';
import { describedMembers, describedMeta, SERVER_INFO_KEY } from '../protocol/self-description.ts';
import {
  type Era,
  isProtocolVersion,
  modernVersion,
  namesModernEra,
  newestVersion,
  protocolVersions,
} from '../protocol/versions.ts';
import { sendRequest } from './own-requests.ts';
import { RpcResponseError } from './server-errors.ts';
import { kept, type ServerFacts, ttlOf } from './server-facts.ts';
import type { Upstream } from './upstream.ts';

/** Server requests that we can relay. Whether the client supports them is checked when the server sends one. */
export const relayedCapabilities = {
  roots: { listChanged: true },
  sampling: { tools: {} },
  elicitation: { form: {}, url: {} },
};

/** In the modern era, what a server offers may depend on them. */
const modernCapabilities = {
  ...relayedCapabilities,
  roots: {},
  extensions: {
    'io.modelcontextprotocol/tasks': {},
    'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] },
  },
};

export interface Identity {
  name: string;
  version: string;
}

export interface Self {
  identity: Identity;
  /** Our id, by which loops are detected; undefined if we are no server ourselves. */
  instance: string | undefined;
}

/** What earlier connections found out about a server. */
export interface KnownEra {
  era: Era | undefined;
  /** What a modern server said about itself, and when that expires. */
  discovered: { facts: ServerFacts; until: number } | undefined;
  /** Set if no other era may be used. */
  only?: Era | undefined;
  /** A shorter timeout of the handshake, if there is a connection in the other era already. */
  timeoutMs?: number | undefined;
  /** Whether the era is only preferred by a client: if the handshake fails, the other one is tried. */
  isWished?: boolean;
}

/** A server that has not responded to discovery after this time gets a legacy greeting too. */
const SILENT_MS = 5_000;
/** What a server said about itself is asked for again this long after it expired, at the earliest. */
const REDISCOVER_MS = 60_000;

/** Some legacy servers exit on a method that they do not know. */
export class EndedByDiscoveryError extends Error {
  constructor() {
    super('The server exited when it was asked for its protocol versions.');
  }
}

/** Detects the era of a server, notes it in `known`, and does the handshake of that era. */
export async function shakeHands(
  upstream: Upstream,
  self: Self,
  capabilities: object,
  known: KnownEra,
): Promise<ServerFacts> {
  const { identity, instance } = self;
  const us = { clientInfo: identity, logLevel: undefined };
  upstream.ownMeta = describedMeta({ ...us, capabilities: modernCapabilities });
  upstream.unknownClient = describedMembers({ ...us, capabilities: {} });
  const greet = () => initialize(upstream, self, capabilities);
  const facts = await factsOf(upstream, instance, known, greet);
  known.era = facts.era;
  upstream.era = facts.era;
  upstream.ready(facts.version);
  if (facts.era === 'legacy') upstream.notify('notifications/initialized');
  return facts;
}

async function factsOf(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
  greet: () => Promise<ServerFacts>,
): Promise<ServerFacts> {
  if (known.only === 'legacy') return greet();
  if (known.only === 'modern') {
    const facts = await discovered(upstream, instance, known);
    if (facts !== undefined) return facts;
    const why = `The server does not support the modern era (protocol ${modernVersion}).`;
    throw new SwitchboardError('server_protocol_error', why);
  }
  return known.era === 'legacy'
    ? legacyFirst(upstream, instance, known, greet)
    : modernFirst(upstream, instance, known, greet);
}

/** A server that was a legacy one before may have been upgraded. */
async function legacyFirst(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
  greet: () => Promise<ServerFacts>,
): Promise<ServerFacts> {
  try {
    return await greet();
  } catch (error) {
    const isRejected = error instanceof RpcResponseError || isRejection(error);
    const facts = isRejected ? await discovered(upstream, instance, known) : undefined;
    if (facts === undefined) throw error;
    return facts;
  }
}

async function modernFirst(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
  greet: () => Promise<ServerFacts>,
): Promise<ServerFacts> {
  const discovery = discovered(upstream, instance, known);
  discovery.catch(() => {});
  if (await settlesWithin(discovery, SILENT_MS, { ref: false })) return (await discovery) ?? greet();
  try {
    return await greet();
  } catch (error) {
    const late = await discovery;
    if (late === undefined) throw error;
    return late;
  }
}

/** What a modern server says about itself; undefined if it is a legacy one. */
async function discovered(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
): Promise<ServerFacts | undefined> {
  known.discovered = await discover(upstream, instance, undefined);
  return known.discovered?.facts;
}

async function discover(
  upstream: Upstream,
  instance: Self['instance'],
  timeoutMs: number | undefined,
): Promise<KnownEra['discovered']> {
  upstream.era = 'modern';
  try {
    const result = asObject(await requestDiscovery(upstream, timeoutMs));
    const versions = Array.isArray(result.supportedVersions) ? result.supportedVersions : [];
    if (!versions.includes(modernVersion)) return checkVersions(versions);
    return { facts: modernFacts(result, instance), until: Date.now() + ttlOf(result) };
  } catch (error) {
    if (error instanceof RpcResponseError) return checkVersions(supportedIn(error));
    if (upstream.isGone && upstream.isLocal) throw new EndedByDiscoveryError();
    if (isRejection(error)) return undefined;
    throw error;
  }
}

/** Retries once if the server rejects our version but lists it as supported, as clients are meant to do. */
async function requestDiscovery(upstream: Upstream, timeoutMs: number | undefined): Promise<unknown> {
  const send = () => sendRequest(upstream, 'server/discover', {}, timeoutMs, 'standing');
  try {
    return await send();
  } catch (error) {
    const isSupported = error instanceof RpcResponseError && supportedIn(error).includes(modernVersion);
    if (!isSupported) throw error;
    return send();
  }
}

/** What a server says about itself now; undefined if what it said before has not expired. */
export async function rediscover(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
  timeoutMs: number,
): Promise<ServerFacts | undefined> {
  const now = Date.now();
  const { discovered: before } = known;
  if (before === undefined || before.until + REDISCOVER_MS > now) return undefined;
  // Concurrent callers do not ask too.
  known.discovered = { ...before, until: now };
  known.discovered = (await discover(upstream, instance, timeoutMs)) ?? before;
  return known.discovered.facts;
}

/** Throws if the server supports only later versions than we do, so that the legacy era is not tried. */
function checkVersions(versions: readonly unknown[]): undefined {
  if (versions.length === 0 || !versions.every(namesModernEra)) return;
  if (!versions.includes(modernVersion)) throw unsupported(versions.join(', '));
}

function supportedIn({ rpc }: RpcResponseError): readonly unknown[] {
  const { supported } = asObject(rpc.data);
  return rpc.code === UNSUPPORTED_VERSION && Array.isArray(supported) ? supported : [];
}

const UNSUPPORTED_VERSION = -32022;

/** Whether the HTTP status rejects the request, but not us. */
export function isRejection(error: unknown): boolean {
  const status = error instanceof SwitchboardError ? error.data.status : undefined;
  if (typeof status !== 'number' || status < 400 || status > 499) return false;
  return ![401, 403, 408, 429].includes(status);
}

function modernFacts(result: Record<string, unknown>, instance: Self['instance']): ServerFacts {
  const { capabilities, instructions, serverInfo, _meta: meta } = result;
  const info = asObject(meta)[SERVER_INFO_KEY] ?? serverInfo;
  return {
    version: modernVersion,
    era: 'modern',
    capabilities: asObject(capabilities),
    ...kept(instructions, info),
    instances: instancesIn(result, instance),
  };
}

async function initialize(
  upstream: Upstream,
  { identity, instance }: Self,
  capabilities: object,
): Promise<ServerFacts> {
  upstream.era = 'legacy';
  const params = { protocolVersion: newestVersion, capabilities, clientInfo: identity };
  const result = asObject(await sendRequest(upstream, 'initialize', params, undefined, 'greeting'));
  const { protocolVersion, capabilities: offered, instructions, serverInfo } = result;
  if (!isProtocolVersion(protocolVersion)) throw unsupported(inWords(protocolVersion));
  return {
    version: protocolVersion,
    era: 'legacy',
    capabilities: asObject(offered),
    ...kept(instructions, serverInfo),
    instances: instancesIn(result, instance),
  };
}

function unsupported(versions: string): SwitchboardError {
  const ours = [modernVersion, ...protocolVersions].join(', ');
  const message = `The server supports protocol ${versions}; Switchboard supports ${ours}.`;
  return new SwitchboardError('server_protocol_error', message);
}
