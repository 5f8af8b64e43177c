import { SwitchboardError } from '../../errors.ts';
import { byteLength, type Chunks, join } from '../../protocol/jsonrpc.ts';
import { bytesAt, idValue, type Message } from '../../protocol/message.ts';
import { MAX_TASK_ID_BYTES } from '../../protocol/scalar-limits.ts';
import { splice } from '../../protocol/splice.ts';
import type { Delivery } from '../../upstreams/delivery.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Replica } from '../../upstreams/replica.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { required } from '../resolve.ts';

/** Work that a replica does after it has responded to the call that began it. Only that replica knows it. */
interface Task {
  readonly id: string;
  readonly group: Group;
  readonly replica: Replica;
  /** The server name that the client used; URIs in the result get the same one. */
  readonly qualifier: string;
  /** Progress continues under the tokens of the call: ours, and the client's. */
  readonly progress: { upstream: Upstream; token: number; given: Buffer } | undefined;
}

export interface TaskCall {
  readonly message: Message;
  readonly group: Group;
  readonly context: { readonly qualifier: string };
  readonly delivery: Pick<Delivery, 'carrier'> | undefined;
}

/** Limits the memory of a client that begins tasks and never polls them. */
const MAX_TASKS = 1_000;

/** A response that begins a task is short. */
const LARGEST_TASK = 1024 * 1024;

/** By the ids that servers gave them. */
export class Tasks {
  private readonly byId = new Map<string, Task>();

  begin(response: Chunks, { message, group, context, delivery }: TaskCall): void {
    const id = begunTask(response);
    const carrier = delivery?.carrier;
    if (id === undefined || carrier === undefined) return;
    const { replica, upstream, id: token } = carrier;
    const progress = progressOf(message, upstream, token);
    this.byId.delete(id);
    this.byId.set(id, { id, group, replica, qualifier: context.qualifier, progress });
    const [oldest] = this.byId.keys();
    if (this.byId.size > MAX_TASKS) this.byId.delete(oldest!);
  }

  has({ taskId }: Message): boolean {
    return taskId !== undefined && this.byId.has(taskId.value);
  }

  /** Another client's task is treated as unknown. */
  named(message: Message): Task {
    const id = required(message.taskId, 'taskId');
    const task = this.byId.get(id);
    if (task === undefined) throw unknownTask(id);
    return task;
  }

  find(matches: (task: Task) => boolean): Task | undefined {
    for (const task of this.byId.values()) if (matches(task)) return task;
    return undefined;
  }
}

export function unknownTask(id: string): SwitchboardError {
  return new SwitchboardError('invalid_params', `Unknown task: ${id}`);
}

/** Undefined if the response began no task, or its id is too long. */
export function begunTask(response: Chunks): string | undefined {
  // A server may respond without a task, and then the response may be large.
  if (byteLength(response) > LARGEST_TASK) return undefined;
  const { result } = JSON.parse(join(response).toString()) as { result?: { task?: { taskId?: unknown } } };
  const id = result?.task?.taskId;
  return typeof id === 'string' && Buffer.byteLength(id) <= MAX_TASK_ID_BYTES ? id : undefined;
}

interface TaskOwner {
  tasks: Tasks | undefined;
  stream: { send(message: Chunks): void };
}

export function passTaskStatus(replica: Replica, message: Message, sessions: Iterable<TaskOwner>): void {
  const id = message.taskId?.value;
  for (const session of sessions) {
    if (session.tasks?.find((task) => task.id === id && task.replica === replica) === undefined) continue;
    session.stream.send([message.bytes]);
    return;
  }
}

export function passTaskProgress(
  upstream: Upstream,
  { bytes, progressToken }: Message,
  sessions: Iterable<TaskOwner>,
): void {
  const token = progressToken && idValue(bytes, progressToken);
  for (const session of sessions) {
    const hasToken = ({ progress }: Task) => progress?.upstream === upstream && progress.token === token;
    const given = session.tasks?.find(hasToken)?.progress?.given;
    if (given === undefined) continue;
    session.stream.send([splice(bytes, [{ ...progressToken!, bytes: given }])]);
    return;
  }
}

export function progressOf(message: Message, upstream: Upstream, token: number): Task['progress'] {
  const { bytes, wantedProgress } = message;
  // A copy: a few bytes of a large request would keep all of it in memory.
  return wantedProgress && { upstream, token, given: Buffer.from(bytesAt(bytes, wantedProgress)) };
}
