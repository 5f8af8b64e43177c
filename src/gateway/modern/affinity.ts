import { byteLength, bytesOf, type Chunks } from '../../protocol/jsonrpc.ts';
import { withMembers } from '../../protocol/members.ts';
import { endsOf, mentions } from '../../protocol/mentions.ts';
import { INPUT_REQUIRED, type ModernResult, stringAt } from '../../protocol/modern-result.ts';
import type { Edit } from '../../protocol/splice.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Replica } from '../../upstreams/replica.ts';
import { SMALL_BYTES } from '../crossing/input.ts';
import { type RequestStates, STATE_MARK } from './request-state.ts';
import { knowsTasks, publicTaskId } from './tasks.ts';

/** Whether a client has to be led back to the same replica by what an answer between two of the modern era says. */
export function mayLeadBack(group: Group, replica: Replica, method: string, chunks: Chunks): boolean {
  if (method.startsWith('tasks/')) return true;
  if (asks(chunks) && (group.isShared || mentions(chunks, STATE_MARK))) return true;
  return (
    method === 'tools/call' &&
    knowsTasks(replica.factsFor('modern')?.capabilities) &&
    mentions(chunks, 'taskId')
  );
}

/** The call whose client is led back. */
export interface LedCall {
  readonly method: string;
  readonly context: { readonly group: Group };
  readonly states: RequestStates;
  binding(): string;
}

/** Servers say so first or last; what is large and says it in the middle is no question of anybody known. */
function asks(chunks: Chunks): boolean {
  if (byteLength(chunks) <= SMALL_BYTES) return mentions(chunks, INPUT_REQUIRED);
  return endsOf(chunks).some((end) => end.includes(INPUT_REQUIRED));
}

/** An answer's result: where it begins, and what it says of itself. */
export interface FoundResult extends ModernResult {
  start: number;
}

/** The edits that have a state, or the id of a task, lead back to the replica that gave it. */
export function leadBack(
  answer: Buffer,
  { start, type, requestState, taskId }: FoundResult,
  { server, number }: Replica,
  call: LedCall,
): Edit[] {
  const { method, states } = call;
  const { group } = call.context;
  const edits: Edit[] = [];
  const state = requestState && stringAt(answer, requestState);
  // One that looks like ours, as that of a Switchboard behind us does, would not be known to be its own.
  if (type === INPUT_REQUIRED && (group.isShared || state?.startsWith(STATE_MARK))) {
    const issued = bytesOf(states.issue({ kind: 'replica', server, number, state }, call.binding()));
    edits.push(
      requestState === undefined
        ? withMembers(answer, start, Buffer.concat([Buffer.from('"requestState":'), issued]))
        : { ...requestState, bytes: issued },
    );
  }
  const own = taskId && stringAt(answer, taskId);
  if (own !== undefined && (type === 'task' || method.startsWith('tasks/'))) {
    const project = group.project.id;
    edits.push({ ...taskId!, bytes: bytesOf(publicTaskId({ project, server, number, own })) });
  }
  return edits;
}
