import type { Backend } from '../../api/backend.ts';
import type { RunDetails, RunView } from '../../api/chat-views.ts';
import { SwitchboardError } from '../../errors.ts';
import type { RunMessageRow, RunRow } from '../../store/types.ts';
import { viewOf as callViewOf } from './calls.ts';
import { needStored, type Parts } from './parts.ts';

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
      const { runs, nextCursor } = await needStored(parts).store.runs(id, filter);
      return { runs: runs.map(runView), next_cursor: nextCursor ?? null };
    },
    async run(project, id) {
      const live = projects.get(project);
      const found = await needStored(parts).store.run(live.id, id);
      if (found !== undefined) {
        const { run, messages, calls } = found;
        return {
          ...runView(run),
          messages: messages.map(messageView),
          tool_calls: calls.map(callViewOf),
        };
      }
      throw new SwitchboardError(
        'not_found',
        `There is no run ${JSON.stringify(id)} in project "${live.name}".`,
      );
    },
  };
}

function runView(row: RunRow): RunView {
  return {
    id: row.id,
    status: row.status,
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
