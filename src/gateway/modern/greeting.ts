import { idBytes } from '../../protocol/envelope.ts';
import { bytesOf, resultMessage } from '../../protocol/jsonrpc.ts';
import { SERVER_INFO_KEY } from '../../protocol/self-description.ts';
import { modernVersion, protocolVersions } from '../../protocol/versions.ts';
import type { Identity } from '../../upstreams/handshake.ts';
import type { Incoming } from '../caller.ts';
import { mergedExtensions } from '../extensions.ts';
import { hold } from '../hold.ts';
import { instancesMeta } from '../instances.ts';
import { instructionsOf } from '../instructions.ts';
import { offeredCapabilities } from '../legacy/greeting.ts';
import type { Scope } from '../scope.ts';

/** server/discover: what we are. Extensions are those of the servers, so those that were never seen are waited for. */
export function discover(
  scope: Scope,
  incoming: Incoming,
  { identity, instance }: { identity: Identity; instance: string },
): void {
  const answer = () => {
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
  };
  const discovered = scope.listable();
  if (discovered === undefined) answer();
  else hold(incoming, () => discovered, answer);
}
