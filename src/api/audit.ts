import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { z } from 'zod';
import type { AuditRow } from '../store/audit/entry.ts';
import type { AuditFilter } from '../store/audit.ts';
import { auditQuery } from './access-input.ts';
import { authorizePlace } from './access-places.ts';
import { type AuditEntry, auditCheck, auditPage } from './access-views.ts';
import { findProject } from './http/authorization.ts';
import type { StreamReply } from './http/event-stream.ts';
import { ok } from './http/reply.ts';
import { type Asking, type Route, route } from './http/route.ts';
import { principalId } from './principals.ts';
import { needDatabase } from './services.ts';

const LINES = 'application/jsonl';

export const auditRoutes: Route[] = [
  route('GET', '/audit', {
    operationId: 'listAudit',
    summary:
      'List what was changed and denied, newest first; or export all of it with Accept: application/jsonl. Without a project, it needs the role admin',
    action: 'manage',
    authorizesItself: true,
    query: auditQuery,
    isLines: true,
    answers: { 200: auditPage },
    async handle({ query, accept = '', ...asking }) {
      const { audit } = needDatabase(asking.services).store;
      const filter = await filterOf(asking, query);
      if (query.format === 'jsonl' || accept.includes(LINES))
        return exportOf(audit.each(filter), () => mayContinue(asking, filter.project));
      const { limit, cursor } = query;
      const { entries, nextCursor } = await audit.list({ ...filter, limit, cursor });
      return ok({ entries: entries.map(entryOf), next_cursor: nextCursor ?? null });
    },
  }),
  route('GET', '/audit/verify', {
    operationId: 'verifyAudit',
    summary: 'Check that no entry of the audit log was changed, removed or inserted',
    action: 'administer',
    answers: { 200: auditCheck },
    async handle({ services }) {
      const { entries, firstSeq, lastSeq, head, problem } = await needDatabase(services).store.audit.verify();
      return ok({
        ...{ entries, first_seq: firstSeq ?? null, last_seq: lastSeq ?? null, head },
        problem: problem ?? null,
      });
    },
  }),
];

async function filterOf(asking: Asking, query: z.output<typeof auditQuery>): Promise<AuditFilter> {
  const { project: named, principal, action, outcome, since, until } = query;
  const project = named === undefined ? undefined : projectIdOf(asking, named);
  if (named === undefined) authorizePlace(asking, undefined, 'the audit log');
  return {
    ...{ project, action, outcome },
    principal: principal === undefined ? undefined : await principalId(asking, principal),
    since: since === undefined ? undefined : new Date(since),
    until: until === undefined ? undefined : new Date(until),
  };
}

/** An administrator may also name a project that is gone, by its id. */
function projectIdOf(asking: Asking, named: string): string {
  const { services, sender } = asking;
  const mayNameGone = sender.principal.permissions.may('administer', undefined);
  if (mayNameGone && services.projects.lookUp(named) === undefined) {
    authorizePlace(asking, undefined, 'the audit log');
    return named;
  }
  const project = findProject(services, sender, named);
  authorizePlace(asking, project, 'the audit log');
  return project.id;
}

function mayContinue({ sender: { principal } }: Asking, project: string | undefined): boolean {
  return !principal.isEnded && principal.permissions.may('manage', project);
}

/** Cut off if the database fails, or the sender may not have it any more. */
function exportOf(rows: AsyncIterable<AuditRow>, mayContinue: () => boolean): StreamReply {
  async function* lines() {
    for await (const row of rows) {
      if (!mayContinue()) throw new Error('The sender may not have the rest.');
      yield `${JSON.stringify(entryOf(row))}\n`;
    }
  }
  return {
    stream(response: ServerResponse) {
      response.writeHead(200, { 'content-type': LINES, 'cache-control': 'no-store' });
      if (response.req.method === 'HEAD') response.end();
      else pipeline(Readable.from(lines()), response).catch(() => response.destroy());
    },
  };
}

function entryOf(row: AuditRow): AuditEntry {
  const { seq, at, address, action, subject, outcome, rule_id: rule, count, before, after } = row;
  return {
    ...{ seq, at: at.toISOString(), address, action, subject, outcome, rule, count, before, after },
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
    project:
      row.project_id === null ? null : { id: row.project_id, name: row.project_name ?? row.project_id },
    previous: row.previous.toString('hex'),
    hash: row.hash.toString('hex'),
  };
}
