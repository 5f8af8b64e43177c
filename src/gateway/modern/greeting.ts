import { bytesOf, resultMessage } from '../../protocol/jsonrpc.ts';
import { idBytes } from '../../protocol/message.ts';
import { SERVER_INFO_KEY } from '../../protocol/self-description.ts';
import { modernVersion, protocolVersions } from '../../protocol/versions.ts';
import type { Identity } from '../../upstreams/handshake.ts';
import type { Incoming } from '../caller.ts';
import { instancesMeta, instructionsOf, mergedExtensions, offeredCapabilities } from '../greeting.ts';
import { after } from '../respond.ts';
import type { Scope } from '../scope.ts';

/** Handles server/discover. Waits for servers that never connected, because their extensions are part of the result. */
export function discover(
  scope: Scope,
  incoming: Incoming,
  { identity, instance }: { identity: Identity; instance: string },
): void {
  after(incoming, scope.listable(), () => {
    const result = {
      resultType: 'complete',
      supportedVersions: [modernVersion, ...protocolVersions],
      capabilities: { ...offeredCapabilities, ...mergedExtensions(scope) },
      ...instructionsOf(scope),
      // Servers come and go.
      ttlMs: 0,
      cacheScope: 'private',
      _meta: {
        [SERVER_INFO_KEY]: { title: 'Switchboard', ...identity },
        ...instancesMeta(scope, instance),
      },
    };
    incoming.responder.respond(resultMessage(idBytes(incoming.message), bytesOf(result)));
  });
}
