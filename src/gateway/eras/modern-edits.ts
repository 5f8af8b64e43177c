import { bytesOf, type Chunks } from '../../protocol/jsonrpc.ts';
import { mentions } from '../../protocol/mentions.ts';
import { INPUT_REQUIRED, readModernResult, resultStart, stringAt } from '../../protocol/modern-result.ts';
import type { Edit } from '../../protocol/splice.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Replica } from '../../upstreams/replica.ts';
import type { RequestStates } from './request-state.ts';
import { knowsTasks, publicTaskId } from './tasks.ts';

/** Whether a client has to be led back to the same replica by what an answer between two of the modern era says. */
export function mayLeadBack(group: Group, replica: Replica, method: string, chunks: Chunks): boolean {
  if (method.startsWith('tasks/')) return true;
  if (group.isShared && mentions(chunks, INPUT_REQUIRED)) return true;
  return method === 'tools/call' && knowsTasks(replica.facts?.capabilities) && mentions(chunks, 'taskId');
}

/** The edits that have a state, or the id of a task, lead back to the replica that gave it. */
export function leadBack(
  answer: Buffer,
  group: Group,
  place: string,
  { server, number }: Replica,
  states: RequestStates,
  binding: () => string,
): Edit[] {
  const { type, requestState, taskId } = readModernResult(answer, resultStart(answer));
  const edits: Edit[] = [];
  const state = requestState && stringAt(answer, requestState);
  if (type === INPUT_REQUIRED && state !== undefined && group.isShared) {
    const issued = states.issue({ kind: 'replica', server, number, state }, binding());
    edits.push({ ...requestState!, bytes: bytesOf(issued) });
  }
  const own = taskId && stringAt(answer, taskId);
  if (own !== undefined) {
    edits.push({ ...taskId!, bytes: bytesOf(publicTaskId({ place, server, number, own })) });
  }
  return edits;
}
