import type { AccessControl } from '../identity/access-control.ts';
import type { Limiter } from '../identity/limiter.ts';
import type { Sender } from '../identity/principal.ts';
import type { Incoming } from './caller.ts';
import { isCall } from './resolve.ts';
import { type AllScopes, chooseScope, type Scope } from './scope.ts';

interface Guards {
  readonly access: AccessControl;
  readonly limiter: Limiter;
}

/** The scope of a request, which counts towards the limits. `own`: the scope of its session, if it has one. */
export function enter(
  scopes: AllScopes,
  { access, limiter }: Guards,
  sender: Sender,
  own: Scope | undefined,
  { message, projects }: Pick<Incoming, 'message' | 'projects'>,
): Scope {
  const { principal } = sender;
  const visible = scopes.for(principal.permissions);
  const scope = chooseScope(visible, own ?? visible.all, projects, message, (project) =>
    access.reportHidden(sender, project),
  );
  // What goes to a server is counted again when the server is known.
  const goesOn = isCall(message.method) || message.method.startsWith('tasks/');
  limiter.countRequest(principal, scope.project?.id, goesOn);
  return scope;
}
