import type { Principal } from '../../identity/principal.ts';
import { byteLength, bytesOf, type Chunks } from '../../protocol/jsonrpc.ts';
import { withMembers } from '../../protocol/members.ts';
import { endsOf, mentions } from '../../protocol/mentions.ts';
import type { Message } from '../../protocol/message.ts';
import { INPUT_REQUIRED, type ModernResult, stringAt } from '../../protocol/modern-result.ts';
import type { Edit } from '../../protocol/splice.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Replica } from '../../upstreams/replica.ts';
import { SMALL_BYTES } from '../crossing/input.ts';
import { type RequestStates, STATE_MARK } from './request-state.ts';
import { supportsTasks, type TaskIds } from './tasks.ts';

/** Whether the client must return to the same replica. */
export function needsAffinity(group: Group, replica: Replica, method: string, chunks: Chunks): boolean {
  if (method.startsWith('tasks/')) return true;
  if (requiresInput(chunks) && (group.isShared || mentions(chunks, STATE_MARK))) return true;
  return (
    method === 'tools/call' &&
    supportsTasks(replica.factsFor('modern')?.capabilities) &&
    mentions(chunks, 'taskId')
  );
}

export interface AffinityContext {
  readonly message: Message;
  readonly context: { readonly group: Group };
  readonly caller: { readonly principal: Principal };
  readonly services: { readonly states: RequestStates; readonly taskIds: TaskIds };
  binding(): string;
}

/** Servers write the type first or last; no known server writes it in the middle of a large response. */
function requiresInput(chunks: Chunks): boolean {
  if (byteLength(chunks) <= SMALL_BYTES) return mentions(chunks, INPUT_REQUIRED);
  return endsOf(chunks).some((end) => end.includes(INPUT_REQUIRED));
}

export interface FoundResult extends ModernResult {
  start: number;
}

/** Makes a request state, or a task id, lead back to the replica that issued it. */
export function affinityEdits(
  response: Buffer,
  { start, type, requestState, taskId }: FoundResult,
  { server, number }: Replica,
  call: AffinityContext,
): Edit[] {
  const { group } = call.context;
  const edits: Edit[] = [];
  const state = requestState && stringAt(response, requestState);
  // A state with our mark, as another Switchboard issues it, would not be recognized as the server's own.
  if (type === INPUT_REQUIRED && (group.isShared || state?.startsWith(STATE_MARK))) {
    const { states } = call.services;
    const issued = bytesOf(states.issue({ kind: 'replica', server, number, state }, call.binding()));
    edits.push(
      requestState === undefined
        ? withMembers(response, start, Buffer.concat([Buffer.from('"requestState":'), issued]))
        : { ...requestState, bytes: issued },
    );
  }
  const own = taskId && stringAt(response, taskId);
  if (own !== undefined && (type === 'task' || call.message.method.startsWith('tasks/'))) {
    const project = group.project.id;
    const id = call.services.taskIds.issue({ project, server, number, own }, call.caller.principal);
    edits.push({ ...taskId!, bytes: bytesOf(id) });
  }
  return edits;
}
