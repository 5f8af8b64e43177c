import { setTimeout as delay } from 'node:timers/promises';
import { SwitchboardError } from '../errors.ts';
import { instancesIn } from '../protocol/instances.ts';
import { asObject, inWords } from '../protocol/objects.ts';
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

/** What we can pass on to some client; whether that client can do it is found out when a server asks. */
export const relayedCapabilities = {
  roots: { listChanged: true },
  sampling: { tools: {} },
  elicitation: { form: {}, url: {} },
};

/** The same in the modern era, where what a server offers may depend on it. */
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

/** Who shakes hands. */
export interface Self {
  identity: Identity;
  /** By what we know ourselves in what servers say; undefined where nobody can be led back to us. */
  instance: string | undefined;
}

/** What is known of a server from earlier connections. */
export interface KnownEra {
  era: Era | undefined;
  /** What a server of the modern era said of itself, and until when that holds. */
  discovered: { facts: ServerFacts; until: number } | undefined;
  /** Where the server is to be spoken to in this era and in no other. */
  only?: Era | undefined;
  /** How long the handshake may take where there is a connection in the other era already. */
  patienceMs?: number | undefined;
  /** Whether the era is only a client's wish: where the handshake fails in it, the server's own is found out. */
  isWished?: boolean;
}

/** A server that has said nothing for so long is asked in the words of the legacy era too. */
const SILENT_MS = 5_000;
/** Beyond the time that its server gives it, what a server says of itself is not asked for more often than this. */
const REDISCOVER_MS = 60_000;
/** The server has ended instead of answering: some of the legacy era do so when they are asked what they do not know. */
export class EndedByQuestionError extends Error {
  constructor() {
    super('The server ended when it was asked which protocol versions it speaks.');
  }
}

/** Finds out which era a server is of, and shakes hands as that one has it. What was found is remembered. */
export async function shakeHands(
  upstream: Upstream,
  self: Self,
  capabilities: object,
  known: KnownEra,
): Promise<ServerFacts> {
  const { identity, instance } = self;
  const us = { clientInfo: identity, logLevel: undefined };
  upstream.ownMeta = describedMeta({ ...us, capabilities: modernCapabilities });
  upstream.nobody = describedMembers({ ...us, capabilities: {} });
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
    const why = `The server does not speak the modern era (protocol ${modernVersion}).`;
    throw new SwitchboardError('server_protocol_error', why);
  }
  return known.era === 'legacy'
    ? legacyFirst(upstream, instance, known, greet)
    : modernFirst(upstream, instance, known, greet);
}

/** What was of the legacy era before may have been replaced. */
async function legacyFirst(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
  greet: () => Promise<ServerFacts>,
): Promise<ServerFacts> {
  try {
    return await greet();
  } catch (error) {
    const isRefused = error instanceof RpcResponseError || isRefusal(error);
    const facts = isRefused ? await discovered(upstream, instance, known) : undefined;
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
  const asked = discovered(upstream, instance, known);
  const first = await unlessSilent(asked);
  if (first !== 'silent') return first ?? greet();
  try {
    return await greet();
  } catch (error) {
    const late = await asked;
    if (late === undefined) throw error;
    return late;
  }
}

async function unlessSilent<T>(answer: Promise<T>): Promise<T | 'silent'> {
  const patience = new AbortController();
  const silence = delay(SILENT_MS, 'silent' as const, { signal: patience.signal, ref: false });
  silence.catch(() => {});
  answer.catch(() => {});
  try {
    return await Promise.race([answer, silence]);
  } finally {
    patience.abort();
  }
}

/** What a server of the modern era says of itself; undefined where it is none. */
async function discovered(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
): Promise<ServerFacts | undefined> {
  known.discovered = await discover(upstream, instance, undefined);
  return known.discovered?.facts;
}

/** Asks a server of the modern era what it is; undefined where the answer says that it is none. */
async function discover(
  upstream: Upstream,
  instance: Self['instance'],
  timeoutMs: number | undefined,
): Promise<KnownEra['discovered']> {
  upstream.era = 'modern';
  try {
    const result = asObject(await describedBy(upstream, timeoutMs));
    const versions = Array.isArray(result.supportedVersions) ? result.supportedVersions : [];
    if (!versions.includes(modernVersion)) return checkVersions(versions);
    return { facts: modernFacts(result, instance), until: Date.now() + ttlOf(result) };
  } catch (error) {
    if (error instanceof RpcResponseError) return checkVersions(supportedIn(error));
    if (upstream.isGone && upstream.isLocal) throw new EndedByQuestionError();
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

/** A server that refuses our version and names it among its own is asked once more: a client chooses from those and retries. */
async function describedBy(upstream: Upstream, timeoutMs: number | undefined): Promise<unknown> {
  const send = () => sendRequest(upstream, 'server/discover', {}, timeoutMs, 'standing');
  try {
    return await send();
  } catch (error) {
    const isSpoken = error instanceof RpcResponseError && supportedIn(error).includes(modernVersion);
    if (!isSpoken) throw error;
    return send();
  }
}

/** What a server says of itself now, where what it said before does not hold any longer; undefined where it does. */
export async function rediscover(
  upstream: Upstream,
  instance: Self['instance'],
  known: KnownEra,
  timeoutMs: number,
): Promise<ServerFacts | undefined> {
  const now = Date.now();
  const { discovered: before } = known;
  if (before === undefined || before.until + REDISCOVER_MS > now) return undefined;
  // Whoever comes meanwhile need not ask too.
  known.discovered = { ...before, until: now };
  known.discovered = (await discover(upstream, instance, timeoutMs)) ?? before;
  return known.discovered.facts;
}

/** A server that speaks only later versions than we do is not asked in the words of the legacy era. */
function checkVersions(versions: readonly unknown[]): undefined {
  if (versions.length === 0 || !versions.every(namesModernEra)) return;
  if (!versions.includes(modernVersion)) throw unspoken(versions.join(', '));
}

function supportedIn({ rpc }: RpcResponseError): readonly unknown[] {
  const { supported } = asObject(rpc.data);
  return rpc.code === UNSUPPORTED_VERSION && Array.isArray(supported) ? supported : [];
}

const UNSUPPORTED_VERSION = -32022;

/** An HTTP status that refuses the request, but not us. */
export function isRefusal(error: unknown): boolean {
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
  if (!isProtocolVersion(protocolVersion)) {
    throw unspoken(inWords(protocolVersion));
  }
  return {
    version: protocolVersion,
    era: 'legacy',
    capabilities: asObject(offered),
    ...kept(instructions, serverInfo),
    instances: instancesIn(result, instance),
  };
}

function unspoken(versions: string): SwitchboardError {
  const ours = [modernVersion, ...protocolVersions].join(', ');
  return new SwitchboardError(
    'server_protocol_error',
    `The server speaks protocol ${versions}; Switchboard speaks ${ours}.`,
  );
}
