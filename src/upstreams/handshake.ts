import { SwitchboardError } from '../errors.ts';
import {
  isProtocolVersion,
  newestVersion,
  type ProtocolVersion,
  protocolVersions,
} from '../protocol/versions.ts';
import type { Upstream } from './upstream.ts';

/** What a server says of itself. */
export interface ServerFacts {
  version: ProtocolVersion;
  capabilities: Record<string, unknown>;
  instructions: string | undefined;
  serverInfo: Record<string, unknown> | undefined;
}

/** What we can pass on to some client; whether that client can do it is found out when a server asks. */
export const relayedCapabilities = {
  roots: { listChanged: true },
  sampling: { tools: {} },
  elicitation: { form: {}, url: {} },
};

export interface Identity {
  name: string;
  version: string;
}

export async function shakeHands(
  upstream: Upstream,
  identity: Identity,
  capabilities: object,
): Promise<ServerFacts> {
  const result = await upstream.request('initialize', {
    protocolVersion: newestVersion,
    capabilities,
    clientInfo: identity,
  });
  const { protocolVersion, capabilities: offered, instructions, serverInfo } = asObject(result);
  if (!isProtocolVersion(protocolVersion)) {
    throw new SwitchboardError(
      'server_protocol_error',
      `The server speaks protocol ${String(protocolVersion)}; Switchboard speaks ${protocolVersions.join(', ')}.`,
    );
  }
  upstream.ready(protocolVersion);
  upstream.notify('notifications/initialized');
  return {
    version: protocolVersion,
    capabilities: asObject(offered),
    instructions: typeof instructions === 'string' ? instructions : undefined,
    serverInfo: typeof serverInfo === 'object' && serverInfo !== null ? asObject(serverInfo) : undefined,
  };
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
