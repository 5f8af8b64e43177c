import type { Api } from '../api/api.ts';
import type { Chats } from '../chats/chats.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Projects } from '../projects/projects.ts';
import type { IdentityEvents } from './identity.ts';

interface Affected {
  readonly gateway: Gateway;
  readonly api: Api;
  readonly chats: Chats | undefined;
  readonly projects: Projects;
}

/** What follows when principals end, or may do more or less than before. `parts` exist when the first event comes. */
export function identityEvents(parts: () => Affected): IdentityEvents {
  return {
    ended(principal) {
      const { gateway, api, chats } = parts();
      gateway.endPrincipal(principal);
      chats?.endOfPrincipal(principal);
      api.endPrincipal(principal);
    },
    changed(principals) {
      const { gateway, api } = parts();
      gateway.permissionsChanged(principals);
      for (const principal of principals) api.permissionsChanged(principal);
    },
    keyEnded(principals) {
      const { gateway, api } = parts();
      gateway.keyEnded(principals);
      for (const principal of principals) api.endStreams(principal);
    },
    applied(policy) {
      parts().projects.keepScopesOf(new Set([...policy.all()].map(({ permissions }) => permissions)));
    },
  };
}
