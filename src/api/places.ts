import type { Action } from '../identity/roles.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { findProject } from './http/authorization.ts';
import type { Asking } from './http/route.ts';

/** The projects that a list is about: the one that the query names, or all in which the sender may do this. Throws if there are none. */
export function placesOf(
  { services, sender, authorize }: Asking,
  action: Action,
  named: string | undefined,
): LiveProject[] {
  if (named !== undefined) {
    const project = findProject(services, sender, named);
    authorize(project);
    return [project];
  }
  const { permissions } = sender.principal;
  const visible = services.projects.list().filter(({ id }) => permissions.may('see', id));
  const allowed = visible.filter(({ id }) => permissions.may(action, id));
  // If none is allowed, the error names the only project that can be meant.
  authorize(allowed[0] ?? (visible.length === 1 ? visible[0] : undefined));
  return allowed;
}
