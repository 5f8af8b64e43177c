import { randomUUID } from 'node:crypto';
import type { Backend } from '../../api/backend.ts';
import type { RunDetails, RunView } from '../../api/chat-views.ts';
import { agentCallRecord } from '../../chats/agent-calls.ts';
import { SwitchboardError } from '../../errors.ts';
import type { RunMessageRow, RunRow } from '../../store/runs.ts';
import { viewOf as callViewOf } from './calls.ts';
import { needStored, type Parts } from './context.ts';

export function chatsBackend(parts: Parts): Backend['chats'] {
  const { projects } = parts;
  return {
    async begin(project, chat) {
      const live = projects.get(project);
      needStored(parts);
      return parts.chats!.begin(live, chat);
    },
    async runs(project, filter) {
      const { id } = projects.get(project);
      const { runs, nextCursor } = await needStored(parts).store.runs.list(id, filter);
      return { runs: runs.map(runView), next_cursor: nextCursor ?? null };
    },
    async beginRun(project, { agent, model, system = null, tools = null, input }) {
      const { id: projectId, vault } = projects.get(project);
      const id = randomUUID();
      const redacted = { system: system && vault.redact(system), input: vault.redact(input) };
      await needStored(parts).store.runs.create({ id, projectId, agent, model, tools, ...redacted });
      return { id };
    },
    async recordCalls(project, run, calls) {
      const { live, client } = await underWay(parts, project, run);
      const redact = (text: string) => live.vault.redact(text);
      const records = calls.map((call) =>
        agentCallRecord(call, { projectId: live.id, runId: run, client }, live.row.record_payloads, redact),
      );
      await needStored(parts).store.calls.record(records);
    },
    async changeRun(
      project,
      run,
      { status, output = null, stop_reason = null, steps = 0, usage = null, error = null },
    ) {
      const { live } = await underWay(parts, project, run);
      if (status === undefined) return;
      const redact = (text: string) => live.vault.redact(text);
      await needStored(parts).store.runs.finish(run, {
        ...{ status, steps, usage, stopReason: stop_reason },
        output: output && redact(output),
        error: error && { code: error.code, message: redact(error.message) },
      });
    },
    async run(project, id) {
      const live = projects.get(project);
      const found = await needStored(parts).store.runs.get(live.id, id);
      if (found !== undefined) {
        const { run, messages, calls } = found;
        return {
          ...runView(run),
          messages: messages.map(messageView),
          tool_calls: calls.map(callViewOf),
        };
      }
      throw noRun(id, live, '');
    },
  };
}

/** A run of an agent elsewhere that is not over. It counts as seen. */
async function underWay(parts: Parts, project: string, run: string) {
  const live = parts.projects.get(project);
  const client = await needStored(parts).store.runs.touchExternal(live.id, run);
  if (client === undefined) throw noRun(run, live, ' that an agent has begun and not ended');
  return { live, client };
}

function noRun(id: string, { name }: { name: string }, which: string): SwitchboardError {
  return new SwitchboardError(
    'not_found',
    `There is no run ${JSON.stringify(id)} in project "${name}"${which}.`,
  );
}

function runView(row: RunRow): RunView {
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

function messageView({ id, role, content, created_at }: RunMessageRow): RunDetails['messages'][number] {
  return {
    ...{ id, role, created_at: created_at.toISOString() },
    content: content as RunDetails['messages'][number]['content'],
  };
}
