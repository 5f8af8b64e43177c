import { randomUUID } from 'node:crypto';
import { persistedValue, runOwner } from '../chats/run-record.ts';
import { SwitchboardError } from '../errors.ts';
import type { Principal } from '../identity/principal.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { withoutFiles } from '../records/call-record.ts';
import type { CallRecord, CallRow } from '../store/call-record.ts';
import type { RunMessageRow, RunRow } from '../store/runs.ts';
import { textWithoutReason } from '../upstreams/server-errors.ts';
import { callViewOf } from './calls.ts';
import { runQuery } from './chat-input.ts';
import { begunRun, type RunDetails, type RunView, runDetails, runList } from './chat-views.ts';
import { readToolBody } from './http/body.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { type AgentRunCall, newRun, runCalls, runChanges } from './run-input.ts';
import { needDatabase, type Services } from './services.ts';
import type { CallView } from './views.ts';

export const runRoutes: Route[] = [
  route('GET', '/projects/:project/runs', {
    operationId: 'listRuns',
    summary: 'List the runs of chats and agents that the sender began, newest first',
    action: 'chat',
    query: runQuery,
    answers: { 200: runList },
    async handle({ services, sender, project, query }) {
      const own = { ...query, principalId: runOwner(sender.principal) };
      const { runs, nextCursor } = await needDatabase(services).store.runs.list(project.id, own);
      return ok({ runs: runs.map(runViewOf), next_cursor: nextCursor ?? null });
    },
  }),
  route('GET', '/projects/:project/runs/:run', {
    operationId: 'getRun',
    summary: 'Get a run with its messages and tool calls',
    action: 'chat',
    answers: { 200: runDetails },
    async handle({ services, sender, project, params }) {
      const own = { principalId: runOwner(sender.principal) };
      const found = await needDatabase(services).store.runs.get(project.id, params.run, own);
      if (found === undefined) throw noRun(params.run, project, '');
      const { run, messages, calls } = found;
      return ok({
        ...runViewOf(run),
        messages: messages.map(messageViewOf),
        tool_calls: calls.map((call) => callViewFor(sender.principal, call)),
      });
    },
  }),
  route('POST', '/projects/:project/runs', {
    operationId: 'beginRun',
    summary: 'Report the start of a run by an agent outside Switchboard',
    action: 'chat',
    body: newRun,
    read: (text) => readToolBody(newRun, text),
    answers: { 201: begunRun },
    async handle({ services, sender, project, params, body }) {
      const { agent, model, system = null, tools = null, input } = body;
      const { vault } = project;
      const id = randomUUID();
      await needDatabase(services).store.runs.create({
        ...{ id, projectId: project.id, principalId: runOwner(sender.principal), agent, model, tools },
        system: system && vault.redact(system),
        input: vault.redact(input),
      });
      return created({ id }, 'projects', params.project, 'runs', id);
    },
  }),
  route('POST', '/projects/:project/runs/:run/calls', {
    operationId: 'recordRunCalls',
    summary: 'Report tool calls of an agent run that did not go through Switchboard',
    action: 'chat',
    body: runCalls,
    read: (text) => readToolBody(runCalls, text),
    answers: { 204: null },
    async handle({ services, sender, project, params, body }) {
      const { principal } = sender;
      const client = await touchRun(services, principal, project, params.run);
      const run = { projectId: project.id, runId: params.run, principal, client };
      const redact = (text: string) => project.vault.redact(text);
      const records = body.calls.map((call) => callRecordOf(call, run, project.row.record_payloads, redact));
      await needDatabase(services).store.calls.record(records);
      return noContent;
    },
  }),
  route('PATCH', '/projects/:project/runs/:run', {
    operationId: 'changeRun',
    summary: 'Report that an agent run is still in progress, or how it ended',
    action: 'chat',
    body: runChanges,
    read: (text) => readToolBody(runChanges, text),
    answers: { 204: null },
    async handle({ services, sender, project, params, body }) {
      const { status, output = null, stop_reason = null, steps = 0, usage = null, error = null } = body;
      await touchRun(services, sender.principal, project, params.run);
      if (status === undefined) return noContent;
      const redact = (text: string) => project.vault.redact(text);
      await needDatabase(services).store.runs.finish(params.run, {
        ...{ status, steps, usage, stopReason: stop_reason },
        output: output && redact(output),
        error: error && { code: error.code, message: redact(error.message) },
      });
      return noContent;
    },
  }),
];

/** Keeps the run from being marked as lost. Returns the name of the agent. */
async function touchRun(
  services: Services,
  principal: Principal,
  project: LiveProject,
  run: string,
): Promise<string> {
  const own = { principalId: runOwner(principal) };
  const agent = await needDatabase(services).store.runs.touchExternal(project.id, run, own);
  if (agent === undefined) throw noRun(run, project, ' that an agent has begun and not ended');
  return agent;
}

/** Why servers fail is for operators. */
function callViewFor({ permissions }: Principal, row: CallRow): CallView {
  const view = callViewOf(row);
  const text = row.error_code === null ? undefined : textWithoutReason(row.error_code, row.server_name);
  if (view.error === null || text === undefined || permissions.may('operate', row.project_id)) return view;
  return { ...view, error: { ...view.error, message: text } };
}

function noRun(id: string, { name }: LiveProject, which: string): SwitchboardError {
  return new SwitchboardError(
    'not_found',
    `There is no run ${JSON.stringify(id)} in project "${name}"${which}.`,
  );
}

function callRecordOf(
  call: AgentRunCall,
  run: Pick<CallRecord, 'projectId' | 'runId' | 'principal' | 'client'>,
  keepsPayloads: boolean,
  redact: (text: string) => string,
): CallRecord {
  const { id, step, tool, server, status, input, output, error = null, duration_ms: durationMs } = call;
  return {
    ...{ ...run, id, step, server, status, durationMs, method: 'tools/call', replica: null },
    tool: redact(tool),
    inputBytes: bytesOf(input),
    outputBytes: output === undefined ? 0 : bytesOf(output),
    error: error && { code: error.code, message: redact(error.message) },
    input: keepsPayloads ? persistedValue(input, redact) : null,
    output: keepsPayloads && output !== undefined ? persistedValue(withoutFiles(output), redact) : null,
    startedAt: new Date(Date.now() - durationMs),
  };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function runViewOf(row: RunRow): RunView {
  return {
    id: row.id,
    status: row.status,
    agent: row.agent,
    model: row.model,
    system: row.system,
    tools: row.tools as string[] | null,
    input: String(row.input ?? ''),
    output: row.output as string | null,
    stop_reason: row.stop_reason as RunView['stop_reason'],
    steps: row.steps,
    usage: row.usage as RunView['usage'],
    error: row.error === null ? null : { code: row.error_code ?? '', message: row.error },
    started_at: row.started_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
  };
}

function messageViewOf({ id, role, content, created_at }: RunMessageRow): RunDetails['messages'][number] {
  return {
    ...{ id, role, created_at: created_at.toISOString() },
    content: content as RunDetails['messages'][number]['content'],
  };
}
