import { SwitchboardError } from '../errors.ts';
import { type Rule, ruleText, type Subject } from '../identity/rules.ts';
import type { StoredRule } from '../store/access/rules.ts';
import { newRule, placeQuery } from './access-input.ts';
import {
  authorizeRow,
  checkReadings,
  checkRoomForRule,
  listedPlaces,
  placeOf,
  projectRef,
} from './access-places.ts';
import { type RuleView, ruleList, ruleView } from './access-views.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Asking, type Route, route } from './http/route.ts';
import { type Names, readNames } from './names.ts';
import { findGroup, findPrincipal } from './principals.ts';
import { applyAccess, needDatabase, type Services } from './services.ts';

export const ruleRoutes: Route[] = [
  route('GET', '/rules', {
    operationId: 'listRules',
    summary: 'List the rules of a project, or of all whose access the sender manages',
    action: 'manage',
    authorizesItself: true,
    query: placeQuery,
    answers: { 200: ruleList },
    async handle({ query, ...asking }) {
      const { services } = asking;
      const { store } = needDatabase(services);
      const isListed = listedPlaces(asking, query.project);
      const [rules, names] = await Promise.all([store.access.listRules(), readNames(services)]);
      const listed = rules.filter(({ project }) => isListed(project));
      return ok({ rules: listed.map((rule) => ruleViewOf(services, rule, names)) });
    },
  }),
  route('POST', '/rules', {
    operationId: 'createRule',
    summary: 'Allow or deny the use of tools, prompts or resources',
    action: 'manage',
    authorizesItself: true,
    body: newRule,
    answers: { 201: ruleView },
    async handle({ body, ...asking }) {
      const { services, sender } = asking;
      const { store } = needDatabase(services);
      const project = placeOf(asking, body.project, `rule ${body.effect} ${body.server}/${body.name}`);
      const subject = await subjectOf(asking, body.subject);
      checkReadings(body);
      checkRoomForRule(services, await store.access.listRules(), project);
      const { effect, kind, server, name, read_only, destructive } = body;
      const rule = await applyAccess(services, sender, ({ access }) =>
        access.createRule({
          ...{ effect, server, name, subject, project: project?.id, kind: kind ?? undefined },
          ...{ readOnly: read_only ?? undefined, destructive: destructive ?? undefined },
        }),
      );
      return created(ruleViewOf(services, rule, await readNames(services)), 'rules', rule.id);
    },
  }),
  route('DELETE', '/rules/:rule', {
    operationId: 'removeRule',
    summary: 'Remove a rule',
    action: 'manage',
    authorizesItself: true,
    answers: { 204: null },
    async handle({ params, ...asking }) {
      const { services, sender } = asking;
      const rules = await needDatabase(services).store.access.listRules();
      const rule = rules.find(({ id }) => id === params.rule);
      const noSuch = new SwitchboardError('not_found', `There is no rule ${JSON.stringify(params.rule)}.`);
      authorizeRow(asking, rule?.project, `rule ${params.rule}`, noSuch);
      if (rule === undefined) throw noSuch;
      await applyAccess(services, sender, ({ access }) => access.removeRule(rule.id));
      return noContent;
    },
  }),
];

/** With the names of groups and keys instead of their ids. */
export function ruleTextOf(rule: Rule, names: Names): string {
  const { subject } = rule;
  return ruleText('id' in subject ? { ...rule, subject: { ...subject, id: names(subject.id) } } : rule);
}

async function subjectOf(
  asking: Asking,
  given:
    | 'everyone'
    | { role: Extract<Subject, { kind: 'role' }>['role'] }
    | { group: string }
    | { principal: string },
): Promise<Subject> {
  if (given === 'everyone') return { kind: 'everyone' };
  if ('role' in given) return { kind: 'role', role: given.role };
  if ('group' in given) return { kind: 'group', id: (await findGroup(asking.services, given.group)).id };
  return { kind: 'principal', id: (await findPrincipal(asking, given.principal)).id };
}

function ruleViewOf(services: Services, rule: StoredRule, names: Names): RuleView {
  const { id, effect, project, subject, kind = null, server, name, createdAt } = rule;
  return {
    ...{ id, text: ruleTextOf(rule, names), effect, project: projectRef(services, project) },
    subject: 'id' in subject ? { ...subject, name: names(subject.id) } : subject,
    ...{ kind, server, name, read_only: rule.readOnly ?? null, destructive: rule.destructive ?? null },
    created_at: createdAt.toISOString(),
  };
}
