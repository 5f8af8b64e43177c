import { SwitchboardError } from '../../errors.ts';
import type { Message } from '../../protocol/message.ts';
import { isProtocolVersion, newestVersion } from '../../protocol/versions.ts';
import type { Identity } from '../../upstreams/handshake.ts';
import { instancesMeta, instructionsOf, mergedExtensions, offeredCapabilities } from '../greeting.ts';
import type { Scope } from '../scope.ts';
import type { SessionFacts } from './caller.ts';

const legacyTasks = { tasks: { cancel: {}, requests: { tools: { call: {} } } } };

/** An unknown version is answered with our newest one. */
export function readInitialize(message: Message): SessionFacts {
  if (message.bytes.length > LARGEST_INITIALIZE) {
    throw new SwitchboardError('invalid_params', `initialize is larger than ${LARGEST_INITIALIZE} bytes.`);
  }
  const { params } = JSON.parse(message.bytes.toString()) as { params?: Record<string, unknown> };
  if (params === undefined || typeof params.protocolVersion !== 'string') {
    throw new SwitchboardError('invalid_params', 'initialize needs params.protocolVersion, a string.');
  }
  const { protocolVersion, capabilities: offered } = params;
  return {
    version: isProtocolVersion(protocolVersion) ? protocolVersion : newestVersion,
    capabilities: keptCapabilities(offered),
    name: nameOf(params.clientInfo),
    clientInfo: keptInfo(params.clientInfo),
  };
}

/** Kept as long as the session; real clients stay far below. */
const LARGEST_INITIALIZE = 256 * 1024;
const LARGEST_CAPABILITIES = 8 * 1024;
/** `clientInfo` may contain icons. Of a larger one, only name, title and version are kept. */
const LARGEST_INFO = 4 * 1024;
const LONGEST_NAME = 200;
/** Modern servers require a name. */
const unnamed = { name: 'unknown', version: '0' };

export function nameOf(clientInfo: unknown): string {
  const { name, version } = (clientInfo ?? {}) as { name?: unknown; version?: unknown };
  const parts = [name, version].filter((part) => typeof part === 'string' && part !== '');
  return cut(parts.join(' '));
}

/** Copies, because a slice keeps the whole text in memory. */
function cut(text: string): string {
  return text.length <= LONGEST_NAME ? text : Buffer.from(text.slice(0, LONGEST_NAME)).toString();
}

function keptCapabilities(offered: unknown): Record<string, unknown> {
  if (typeof offered !== 'object' || offered === null) return {};
  if (JSON.stringify(offered).length > LARGEST_CAPABILITIES) {
    const why = `params.capabilities is larger than ${LARGEST_CAPABILITIES} bytes.`;
    throw new SwitchboardError('invalid_params', why);
  }
  return offered as Record<string, unknown>;
}

function keptInfo(info: unknown): object {
  if (typeof info !== 'object' || info === null) return unnamed;
  if (JSON.stringify(info).length <= LARGEST_INFO) return info;
  const parts = ['name', 'title', 'version'].flatMap((key) => {
    const part = (info as Record<string, unknown>)[key];
    return typeof part === 'string' ? [[key, cut(part)]] : [];
  });
  return { ...unnamed, ...Object.fromEntries(parts) };
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
