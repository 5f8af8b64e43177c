import type { IssuedKey as IssuedRow, KeyRow } from '../store/access/keys.ts';
import { keyChanges, keyRotation, newKey, placeQuery } from './access-input.ts';
import { checkHeld, checkRank, checkRoom, listedPlaces, placeOf, projectRef } from './access-places.ts';
import { type IssuedKey, issuedKey, type KeyView, keyList, keyView } from './access-views.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Asking, type Route, route } from './http/route.ts';
import { findKey, rolesOf } from './principals.ts';
import { applyAccess, needDatabase, type Services } from './services.ts';

export const keyRoutes: Route[] = [
  route('GET', '/keys', {
    operationId: 'listKeys',
    summary: 'List the keys of a project, or of all projects whose access the sender manages',
    action: 'manage',
    authorizesItself: true,
    query: placeQuery,
    answers: { 200: keyList },
    async handle({ query, ...asking }) {
      const { services } = asking;
      const { store } = needDatabase(services);
      const isListed = listedPlaces(asking, query.project);
      const rows = await store.access.listKeys();
      const listed = rows.filter(({ project_id }) => isListed(project_id));
      return ok({ keys: listed.map((row) => keyViewOf(services, row)) });
    },
  }),
  route('POST', '/keys', {
    operationId: 'createKey',
    summary: 'Make a key for a program; the response shows it, and nothing else ever does',
    action: 'manage',
    authorizesItself: true,
    body: newKey,
    answers: { 201: issuedKey },
    async handle({ body: { name, project: named, role, expires_at }, ...asking }) {
      const { services, sender } = asking;
      const { store } = needDatabase(services);
      const subject = `key ${name}`;
      const project = placeOf(asking, named, subject);
      checkRank(asking, role, project, subject);
      checkRoom((await store.access.listGrants()).length, 'roles of keys and groups');
      const expiresAt = dateOf(expires_at) ?? null;
      const issued = await applyAccess(services, sender, ({ access }) =>
        access.createKey({ name, projectId: project?.id ?? null, role, expiresAt }),
      );
      return created(issuedViewOf(services, issued), 'keys', issued.key.id);
    },
  }),
  route('GET', '/keys/:key', {
    operationId: 'getKey',
    summary: 'Get a key, without its secret',
    action: 'manage',
    authorizesItself: true,
    answers: { 200: keyView },
    handle: async ({ params, ...asking }) =>
      ok(keyViewOf(asking.services, await findKey(asking, params.key))),
  }),
  route('PATCH', '/keys/:key', {
    operationId: 'changeKey',
    summary: 'Change the name of a key, or when it expires; fields that are not sent do not change',
    action: 'manage',
    authorizesItself: true,
    body: keyChanges,
    answers: { 200: keyView },
    async handle({ params, body: { name, expires_at }, ...asking }) {
      const { services, sender } = asking;
      const { id } = await findOwnKey(asking, params.key);
      const key = await applyAccess(services, sender, ({ access }) =>
        access.changeKey(id, { name, expiresAt: dateOf(expires_at) }),
      );
      return ok(keyViewOf(services, key));
    },
  }),
  route('DELETE', '/keys/:key', {
    operationId: 'revokeKey',
    summary: 'Revoke a key: it ends at once, with its roles and everything that it has begun',
    action: 'manage',
    authorizesItself: true,
    answers: { 204: null },
    async handle({ params, ...asking }) {
      const { services, sender } = asking;
      const { id } = await findOwnKey(asking, params.key);
      await applyAccess(services, sender, ({ access }) => access.revokeKey(id));
      return noContent;
    },
  }),
  route('POST', '/keys/:key/rotate', {
    operationId: 'rotateKey',
    summary: 'Give a key a new secret, which only this response shows',
    action: 'manage',
    authorizesItself: true,
    body: keyRotation,
    answers: { 200: issuedKey },
    async handle({ params, body: { overlap_ms, expires_at }, ...asking }) {
      const { services, sender } = asking;
      const { id } = await findOwnKey(asking, params.key);
      const issued = await applyAccess(services, sender, ({ access }) =>
        access.rotateKey(id, { overlapMs: overlap_ms, expiresAt: dateOf(expires_at) }),
      );
      return ok(issuedViewOf(services, issued));
    },
  }),
];

/** A key that may do more than the sender is out of its reach: its new secret would be a way up. */
async function findOwnKey(asking: Asking, given: string): Promise<KeyRow> {
  const key = await findKey(asking, given);
  const held = await rolesOf(asking.services, key.id);
  checkHeld(
    asking,
    held.map(({ role, project_id }) => ({ role, projectId: project_id })),
    `key ${key.name}`,
  );
  return key;
}

function issuedViewOf(services: Services, { key, text }: IssuedRow): IssuedKey {
  return { ...keyViewOf(services, key), key: text };
}

function keyViewOf(services: Services, key: KeyRow): KeyView {
  const secrets = key.secrets.map(({ id, created_at, expires_at, last_used_at }) => ({
    id,
    created_at: created_at.toISOString(),
    expires_at: textOf(expires_at),
    last_used_at: textOf(last_used_at),
  }));
  const uses = secrets.flatMap(({ last_used_at }) => last_used_at ?? []);
  return {
    id: key.id,
    name: key.name,
    project: projectRef(services, key.project_id),
    role: key.role,
    expires_at: textOf(key.expires_at),
    created_at: key.created_at.toISOString(),
    last_used_at: uses.toSorted().at(-1) ?? null,
    secrets,
  };
}

/** Undefined does not change anything. */
function dateOf(time: string | null | undefined): Date | null | undefined {
  return typeof time === 'string' ? new Date(time) : time;
}

function textOf(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}
