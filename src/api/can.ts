import type { Permissions } from '../identity/permissions.ts';
import { localUser, type Principal } from '../identity/principal.ts';
import { type Action, actions } from '../identity/roles.ts';
import type { Rule } from '../identity/rules.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { canQuery } from './access-input.ts';
import { manages, placeOf } from './access-places.ts';
import { type CanView, canView } from './access-views.ts';
import { type Question, targetFor } from './can-target.ts';
import { findProject } from './http/authorization.ts';
import { invalidInput } from './http/check.ts';
import { ok } from './http/reply.ts';
import { type Asking, type Route, route } from './http/route.ts';
import { readNames } from './names.ts';
import { findPrincipal } from './principals.ts';
import { ruleTextOf } from './rules.ts';
import type { Services } from './services.ts';

/** Whom a question is about. */
interface Asked {
  name: string;
  /** Undefined if it has expired. */
  permissions: Permissions | undefined;
}

const SHOWN_ROLES = 3;

type Answer = Pick<CanView, 'allowed' | 'role' | 'reason'> & { rule?: Rule | undefined };

export const canRoutes: Route[] = [
  route('GET', '/can', {
    operationId: 'can',
    summary:
      'Ask whether somebody may do something, and what decides it. About others than the sender, it needs the role owner in the project, or without one the role admin',
    action: 'any',
    query: canQuery,
    answers: { 200: canView },
    async handle({ query, ...asking }) {
      const { services, sender } = asking;
      const { action, name } = query;
      const isAboutItem = action === 'see' || action === 'call';
      if (name !== undefined && !isAboutItem)
        throw invalidInput([{ path: ['name'], message: 'belongs to the actions see and call alone' }]);
      if (name === undefined && query.server !== undefined)
        throw invalidInput([{ path: ['name'], message: 'is missing: what of the server is it about?' }]);
      const { asked, project } = await askedIn(asking, query.principal, query.project);
      const answer =
        asked.permissions !== undefined && name !== undefined && isAboutItem
          ? await answerAboutItem(services, asked.name, asked.permissions, sender.principal, {
              ...{ action, project, name, kind: query.kind, server: query.server },
            })
          : answerAboutRole(asked, action, project, services.projects.list());
      const { allowed, role, reason } = answer;
      return ok({ ...{ allowed, action, role, reason }, rule: await ruleOf(services, answer.rule) });
    },
  }),
];

/** Everybody may ask about themselves, and those who manage the access about others. */
async function askedIn(
  asking: Asking,
  given: string | undefined,
  place: string | undefined,
): Promise<{ asked: Asked; project: LiveProject | undefined }> {
  const { services, sender } = asking;
  const { principal } = sender;
  const isSelf = given === undefined || given === principal.id;
  const mayAskOthers = services.projects.list().some(({ id }) => manages(principal.permissions, id));
  if (isSelf || (given === principal.name && !mayAskOthers)) {
    const project = place === undefined ? undefined : findProject(services, sender, place);
    return { asked: principal, project };
  }
  const { control } = services.identity;
  const authorize: Asking['authorize'] = (project, subject) =>
    control.authorize(sender, 'manage', project, subject);
  const project = placeOf({ ...asking, authorize }, place, `whether ${given} may do something`);
  const local = localUser();
  if (given === local.id) return { asked: local, project };
  const { id, name } = await findPrincipal(asking, given);
  return { asked: { name, permissions: services.identity.policy.get(id)?.permissions }, project };
}

function answerAboutRole(
  { name, permissions }: Asked,
  action: Action,
  project: LiveProject | undefined,
  projects: readonly LiveProject[],
): Answer {
  if (permissions === undefined)
    return { allowed: false, role: null, reason: `The key ${name} has expired.` };
  const role = permissions.roleIn(project?.id) ?? null;
  const allowed = permissions.may(action, project?.id);
  if (role === null && project === undefined)
    return { allowed, role, reason: nowhereReason(name, permissions, projects) };
  return { allowed, role, reason: roleReason(name, role, action, allowed, project) };
}

async function answerAboutItem(
  services: Services,
  who: string,
  permissions: Permissions,
  asker: Principal,
  question: Question,
): Promise<Answer> {
  const { action, kind, name } = question;
  const unknown = {
    allowed: false,
    role: permissions.roleIn(question.project?.id) ?? null,
    reason: `There is no ${kind} ${JSON.stringify(name)} that ${who} could use under this name.`,
  };
  const found = await targetFor(services.projects, permissions, question);
  if (found === undefined) return unknown;
  const { project, item, isListed } = found;
  const { isAllowed, role = null, rule } = permissions.decide(action, project.id, item);
  // To those who must not know of it, it does not exist.
  const mayKnow = asker.permissions.may(rule?.effect === 'deny' ? 'operate' : 'see', project.id);
  if (!mayKnow || (isAllowed && !isListed)) return unknown;
  if (rule === undefined)
    return { allowed: isAllowed, role, reason: roleReason(who, role, action, isAllowed, project) };
  const what = `${item.kind} ${item.name} of ${item.servers[0]}`;
  const reason = `A rule ${rule.effect === 'deny' ? 'denies' : 'allows'} the ${what}.`;
  return { allowed: isAllowed, role, rule, reason };
}

function roleReason(
  who: string,
  role: CanView['role'],
  action: Action,
  isAllowed: boolean,
  project: { name: string } | undefined,
): string {
  const where = project === undefined ? 'in all projects' : `in project "${project.name}"`;
  if (role === null) return `${who} has no role ${where}.`;
  const { role: needed } = actions[action];
  return isAllowed
    ? `${who} has the role ${role} ${where}.`
    : `This needs the role ${needed}; ${who} has the role ${role} ${where}.`;
}

/** Who may ask without a project may know all roles: the asked one itself, and administrators. */
function nowhereReason(who: string, permissions: Permissions, projects: readonly LiveProject[]): string {
  const held = projects.flatMap(({ id, name }) => {
    const role = permissions.roleIn(id);
    return role === undefined ? [] : [`${role} in ${name}`];
  });
  if (held.length === 0) return `${who} has no role.`;
  const more = held.length > SHOWN_ROLES ? ', …' : '';
  return `${who} has no role that holds for all projects (it has ${held.slice(0, SHOWN_ROLES).join(', ')}${more}; name a project with -P).`;
}

async function ruleOf(services: Services, rule: Rule | undefined): Promise<CanView['rule']> {
  if (rule === undefined) return null;
  return { id: rule.id, text: ruleTextOf(rule, await readNames(services)) };
}
