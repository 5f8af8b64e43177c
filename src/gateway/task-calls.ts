import { bytesOf } from '../protocol/jsonrpc.ts';
import type { Edit } from '../protocol/splice.ts';
import type { Replica } from '../upstreams/replica.ts';
import { authorizeGroup } from './authorize.ts';
import { deliver } from './call.ts';
import { readCallOptions } from './call-options.ts';
import type { Incoming } from './caller.ts';
import type { CallServices } from './client-call.ts';
import type { Session } from './legacy/caller.ts';
import { Tasks, unknownTask } from './legacy/tasks.ts';
import { required } from './resolve.ts';
import type { CallContext } from './response-mapping.ts';
import type { Scope } from './scope.ts';

const noTasks = new Tasks();

/** Goes to the replica that runs the task. */
export function callLegacyTask(scope: Scope, incoming: Incoming<Session>, services: CallServices): void {
  const { caller, message } = incoming;
  const tasks = caller.tasks ?? noTasks;
  if (!tasks.has(message)) reportUnknown(incoming, services);
  const { group, replica, qualifier } = tasks.named(message);
  authorizeGroup(incoming, group, services, () => unknownTask(message.taskId?.value ?? ''));
  const context = { group, qualifier, catalog: scope.catalog, project: undefined };
  callTask(incoming, services, context, replica, message.taskId?.value ?? '', []);
}

/** Goes to the replica that the task id names. */
export function callModernTask(scope: Scope, incoming: Incoming, services: CallServices): void {
  const { message, caller } = incoming;
  const id = required(message.taskId, 'taskId');
  const task = services.taskIds.read(id, caller.principal);
  if (task === undefined) reportUnknown(incoming, services);
  const home = task && scope.groupOf(task.project, task.server);
  const replica = task && home?.group.replica(task.server, task.number);
  if (task === undefined || home === undefined || replica === undefined) throw unknownTask(id);
  authorizeGroup(incoming, home.group, services, () => unknownTask(id));
  const { start, end } = message.taskId!;
  const context = { ...home, catalog: scope.catalog, project: scope.project?.id };
  callTask(incoming, services, context, replica, task.own, [{ start, end, bytes: bytesOf(task.own) }]);
}

/** It may be the task of another principal. */
function reportUnknown({ caller: { principal }, address }: Incoming, { access }: CallServices): void {
  if (principal.kind !== 'local') access.reportForeign({ principal, address }, 'task that it has not begun');
}

function callTask(
  incoming: Incoming,
  services: CallServices,
  context: CallContext,
  replica: Replica,
  own: string,
  edits: readonly Edit[],
): void {
  const { caller, message, prefer } = incoming;
  const { timeoutMs } = readCallOptions(message, prefer);
  deliver(incoming, services, context, {
    client: caller.identity,
    kind: 'tools',
    own,
    server: undefined,
    among: undefined,
    labels: undefined,
    only: replica,
    message,
    edits,
    description: caller.facts,
    sender: caller.sender,
    isRepeatable: false,
    // A result may take as long as the task.
    timeoutMs: timeoutMs ?? (message.method === 'tasks/result' ? Number.POSITIVE_INFINITY : undefined),
  });
}
