import { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/envelope.ts';
import { isProtocolVersion, newestVersion } from '../protocol/versions.ts';
import type { Identity } from '../upstreams/handshake.ts';
import { mergedExtensions } from './extensions.ts';
import { instancesMeta } from './instances.ts';
import type { Scope } from './scope.ts';
import type { SessionFacts } from './session.ts';

/** What we can do for every client, whatever the servers behind us can: they come and go. */
export const offeredCapabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

const legacyTasks = { tasks: { cancel: {}, requests: { tools: { call: {} } } } };

/** What the client says of itself. A version that we do not speak is answered with the newest one that we do. */
export function readInitialize(message: Message): SessionFacts {
  const { params } = JSON.parse(message.bytes.toString()) as { params?: Record<string, unknown> };
  if (params === undefined || typeof params.protocolVersion !== 'string') {
    throw new SwitchboardError('invalid_params', 'initialize needs params.protocolVersion, a string.');
  }
  const { protocolVersion, capabilities: offered } = params;
  return {
    version: isProtocolVersion(protocolVersion) ? protocolVersion : newestVersion,
    capabilities: typeof offered === 'object' && offered !== null ? (offered as Record<string, unknown>) : {},
    name: nameOf(params.clientInfo),
    clientInfo:
      typeof params.clientInfo === 'object' && params.clientInfo !== null ? params.clientInfo : unnamed,
  };
}

const LONGEST_NAME = 200;
/** Servers of the modern era want to be told of some name. */
const unnamed = { name: 'unknown', version: '0' };

/** What a client calls itself. */
export function nameOf(clientInfo: unknown): string {
  const { name, version } = (clientInfo ?? {}) as { name?: unknown; version?: unknown };
  const words = [name, version].filter((word) => typeof word === 'string' && word !== '');
  return words.join(' ').slice(0, LONGEST_NAME);
}

export function initializeResult(
  facts: SessionFacts,
  { identity, instance }: { identity: Identity; instance: string },
  scope: Scope,
): object {
  return {
    protocolVersion: facts.version,
    capabilities: { ...offeredCapabilities, ...legacyTasks, ...mergedExtensions(scope) },
    serverInfo: { title: 'Switchboard', ...identity },
    ...instructionsOf(scope),
    _meta: instancesMeta(scope, instance),
  };
}

/** What servers tell models of themselves, one after the other. */
export function instructionsOf(scope: Scope): { instructions?: string } {
  const instructions = scope
    .servers()
    .filter(({ facts: known }) => known?.instructions !== undefined)
    .map((server) => `## ${scope.placeOf(server)}\n${server.facts!.instructions}`)
    .join('\n\n');
  return instructions === '' ? {} : { instructions };
}
