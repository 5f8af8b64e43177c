import { SwitchboardError } from '../errors.ts';
import type { Permissions } from '../identity/permissions.ts';
import { type Role, rank } from '../identity/roles.ts';
import type { Rule } from '../identity/rules.ts';
import { spellings } from '../identity/spellings.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { Named } from './access-views.ts';
import { findProject, hide } from './http/authorization.ts';
import type { Asking } from './http/route.ts';
import { placesOf } from './places.ts';
import type { Services } from './services.ts';

/** More would slow down each change of access. */
const MAX_ROWS = 10_000;
/** Decisions about items of a project may ask all of them. */
const MAX_RULES_IN_PROJECT = 500;
/** What decisions compare an item with, for each rule. */
const MAX_READINGS = 12;

/** Whether somebody manages the access to a project, or without one to all of them. */
export function manages(permissions: Permissions, projectId: string | null | undefined): boolean {
  return projectId ? permissions.may('manage', projectId) : permissions.may('administer', undefined);
}

/** Throws unless the sender manages the access to the project, or without one to all of them. */
export function authorizePlace(
  { services, sender, authorize }: Asking,
  project: LiveProject | undefined,
  subject?: string,
): void {
  if (project === undefined) services.identity.control.authorize(sender, 'administer', undefined, subject);
  authorize(project, subject);
}

/** The project that a body names. Throws unless the sender manages the access to it. */
export function placeOf(
  asking: Asking,
  named: string | null | undefined,
  subject?: string,
): LiveProject | undefined {
  const { services, sender } = asking;
  const project = named === null || named === undefined ? undefined : findProject(services, sender, named);
  authorizePlace(asking, project, subject);
  return project;
}

/** The place of a row. To a sender who does not manage the access to it, the row must look as if it did not exist. */
export function authorizeRow(
  asking: Asking,
  projectId: string | null | undefined,
  subject: string,
  noSuch: SwitchboardError,
): void {
  expectManager(asking);
  const { services, sender } = asking;
  const project = projectId ? services.projects.lookUp(projectId) : undefined;
  if (manages(sender.principal.permissions, projectId)) authorizePlace(asking, project, subject);
  else hide(() => authorizePlace(asking, project, subject), noSuch);
}

/** Throws unless the sender manages the access to something. */
export function expectManager(asking: Asking): void {
  placesOf(asking, 'manage', undefined);
}

/** What a list is about: tells whether it has the rows of a project, or those of all projects. */
export function listedPlaces(
  asking: Asking,
  named: string | undefined,
): (projectId: string | null | undefined) => boolean {
  const ids = new Set(placesOf(asking, 'manage', named).map(({ id }) => id));
  const hasGlobal = named === undefined && asking.sender.principal.permissions.may('administer', undefined);
  return (projectId) => (projectId ? ids.has(projectId) : hasGlobal);
}

/** Throws if the role is above the sender's own in that place. */
export function checkRank(
  { services, sender }: Asking,
  role: Role,
  project: LiveProject | undefined,
  subject: string,
): void {
  const own = sender.principal.permissions.roleIn(project?.id);
  if (rank(role) > rank(own)) services.identity.control.authorize(sender, 'administer', project, subject);
}

/** Throws if one of the roles is above the sender's own in its place. */
export function checkHeld(
  { services, sender }: Asking,
  held: readonly { role: Role; projectId: string | null }[],
  subject: string,
): void {
  const { permissions } = sender.principal;
  const isHigher = held.some(
    ({ role, projectId }) => rank(role) > rank(permissions.roleIn(projectId ?? undefined)),
  );
  if (!isHigher) return;
  const { control } = services.identity;
  const error = new SwitchboardError(
    'forbidden',
    `The ${subject} has a role that is above yours, there or elsewhere: an administrator can change it.`,
  );
  hide(() => control.authorize(sender, 'administer', undefined, subject), error);
}

/** Throws if there are too many rows already. */
export function checkRoom(rows: number, what: string): void {
  if (rows < MAX_ROWS) return;
  throw new SwitchboardError(
    'conflict',
    `There are ${rows} ${what}, which is the limit: remove those that nobody needs.`,
    { data: { limit: MAX_ROWS } },
  );
}

/** Throws if there are too many rules already, or too many that can apply in a project of the new one. */
export function checkRoomForRule(
  { projects }: Services,
  rules: readonly Rule[],
  project: LiveProject | undefined,
): void {
  checkRoom(rules.length, 'rules');
  const byProject = Map.groupBy(rules, (rule) => rule.project);
  const count = (id: string | undefined) => byProject.get(id)?.length ?? 0;
  const others = [...byProject.keys()].filter((id) => id !== undefined);
  const fullest = project?.id ?? others.toSorted((one, other) => count(other) - count(one))[0];
  const found = count(undefined) + (fullest === undefined ? 0 : count(fullest));
  if (found < MAX_RULES_IN_PROJECT) return;
  const where =
    fullest === undefined
      ? 'for all projects'
      : `that can apply in project "${projects.lookUp(fullest)?.name ?? fullest}", with those for all projects`;
  throw new SwitchboardError(
    'conflict',
    `There are ${found} rules ${where}; the limit is ${MAX_RULES_IN_PROJECT}: remove those that nobody needs, or use one pattern for several items.`,
    { data: { limit: MAX_RULES_IN_PROJECT } },
  );
}

/** Throws if the pattern is for resources, and servers could read it in too many ways. */
export function checkReadings({ kind, name }: { kind?: string | null | undefined; name: string }): void {
  if (kind === 'tool' || kind === 'prompt') return;
  if ((spellings(name)?.length ?? Number.POSITIVE_INFINITY) <= MAX_READINGS) return;
  throw new SwitchboardError(
    'invalid_input',
    `The name can be read in more than ${MAX_READINGS} ways: write the URI without escapes of escapes, dots and backslashes, as its server reads it.`,
    { data: { limit: MAX_READINGS } },
  );
}

/** Null for all projects. */
export function projectRef({ projects }: Services, id: string | null | undefined): Named | null {
  if (id === null || id === undefined) return null;
  return { id, name: projects.lookUp(id)?.name ?? id };
}
