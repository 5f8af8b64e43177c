import { SwitchboardError } from '../../errors.ts';
import { unknownProject } from '../../identity/access-control.ts';
import type { Sender } from '../../identity/principal.ts';
import type { Action } from '../../identity/roles.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import type { Services } from '../services.ts';
import type { Route } from './route.ts';

interface NamedProject {
  readonly id: string;
  readonly name: string;
}

type AccessServices = Pick<Services, 'identity' | 'projects'>;

/** Decides whether the sender may make one request. */
export class Authorization {
  private readonly services: AccessServices;
  private readonly sender: Sender;
  private readonly action: Route['action'];
  private place: NamedProject | undefined;
  private isChecked: boolean;

  constructor(services: AccessServices, sender: Sender, { action }: Pick<Route, 'action'>) {
    this.services = services;
    this.sender = sender;
    this.action = action;
    this.isChecked = action === 'any';
  }

  /** Throws if the sender sends too many requests, or may not do this in the project that the path names. */
  enter(name: string): LiveProject {
    const { projects } = this.services;
    const named = projects.lookUp(name);
    this.count(named !== undefined && isVisible(named, this.sender) ? named : undefined);
    const project = findProject(this.services, this.sender, name);
    this.check(project);
    return project;
  }

  /** The same for a path without a project. Whoever authorizes itself calls `check`. */
  enterAll(authorizesItself = false): void {
    this.count(undefined);
    if (!authorizesItself) this.check(undefined);
  }

  /** The same after the body was read, which may take long: roles may have changed. Does not count the request again. */
  repeat(project: NamedProject | undefined, name = ''): void {
    if (project !== undefined && !isVisible(project, this.sender))
      throw hiddenProject(this.services, this.sender, project, name);
    // Whoever authorizes itself does so later.
    if (this.isChecked) this.check(project);
  }

  check(project: NamedProject | undefined, subject?: string): void {
    this.isChecked = true;
    this.place = project;
    if (this.action === 'any') return;
    this.services.identity.control.authorize(this.sender, this.action, project, subject);
  }

  /** For handlers that must call `check`. */
  expectChecked(): void {
    if (!this.isChecked) throw new Error('The handler of this route did not authorize the request.');
  }

  /** Whether it would be allowed now. */
  isAllowed(): boolean {
    const { permissions } = this.sender.principal;
    return this.action === 'any' || permissions.may(this.action, this.place?.id);
  }

  /** The local user can always remove a limit. */
  private count(project: NamedProject | undefined): void {
    const { principal } = this.sender;
    if (principal.kind === 'local') return;
    this.services.identity.limiter.countRequest(principal, project?.id, false);
  }
}

/** By id or name. To a sender without a role in it, it must look as if it did not exist: also how it is named in the error. */
export function findProject(services: AccessServices, sender: Sender, name: string): LiveProject {
  const project = services.projects.get(name);
  if (isVisible(project, sender)) return project;
  throw hiddenProject(services, sender, project, name);
}

/** Records the denial. */
function hiddenProject(
  { identity: { control } }: AccessServices,
  sender: Sender,
  project: NamedProject,
  name: string,
): SwitchboardError {
  control.reportHidden(sender, project);
  return unknownProject(name);
}

/** Lets the denial be recorded, and throws another error instead. */
export function hide(authorize: () => void, error: SwitchboardError): never {
  try {
    authorize();
  } catch (denial) {
    if (!(denial instanceof SwitchboardError)) throw denial;
  }
  throw error;
}

function isVisible({ id }: NamedProject, { principal: { permissions } }: Sender): boolean {
  return permissions.may('see' satisfies Action, id);
}
