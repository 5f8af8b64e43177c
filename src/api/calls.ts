import { SwitchboardError } from '../errors.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { CallRow } from '../store/call-record.ts';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { callFilterOf, callQuery } from './inputs.ts';
import { needDatabase, type Services } from './services.ts';
import { type CallView, callList } from './views.ts';

export const callRoutes: Route[] = [
  route('GET', '/projects/:project/calls', {
    operationId: 'listCalls',
    summary: 'List recorded calls, newest first',
    action: 'observe',
    query: callQuery,
    answers: { 200: callList },
    async handle({ services, project, query }) {
      const { store, recorder } = needDatabase(services);
      const principal = query.principal && callerIn(services, project, query.principal);
      const filter = { ...callFilterOf(query), principal };
      const { calls, nextCursor } = await store.calls.list(project.id, filter);
      return ok({
        calls: calls.map(callViewOf),
        next_cursor: nextCursor ?? null,
        dropped: recorder.dropped,
      });
    },
  }),
];

export function callViewOf(row: CallRow): CallView {
  return {
    id: row.id,
    run_id: row.run_id,
    message_id: row.message_id,
    step: row.step,
    principal: principalOf(row),
    client: row.client || null,
    method: row.method,
    server: row.server_name,
    replica: row.replica,
    tool: row.tool_name,
    status: row.status,
    duration_ms: row.duration_ms,
    input_bytes: row.input_bytes,
    output_bytes: row.output_bytes,
    error: row.error === null ? null : { code: row.error_code ?? '', message: row.error },
    input: row.input,
    output: row.output,
    created_at: row.created_at.toISOString(),
  };
}

/** The id of somebody in the project, by id or name; or of somebody who is gone, by id. */
function callerIn({ identity }: Services, { id, name: place }: LiveProject, given: string): string {
  if (identity.policy.get(given) !== undefined) return given;
  const named = [...identity.policy.all()].filter(
    ({ name, permissions }) => name === given && permissions.may('see', id),
  );
  if (named.length <= 1) return named[0]?.id ?? given;
  const ids = named.map((principal) => principal.id).join(', ');
  throw new SwitchboardError(
    'conflict',
    `Several keys in project "${place}" have the name ${JSON.stringify(given)}: use an id (${ids}).`,
  );
}

/** Calls from before principals were recorded have none. */
function principalOf({ principal_id: id, principal_name: name }: CallRow): CallView['principal'] {
  return id === null ? null : { id, name: name ?? id };
}
