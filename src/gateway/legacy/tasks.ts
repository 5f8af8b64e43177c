import { SwitchboardError } from '../../errors.ts';
import { bytesAt, idValue, type Message } from '../../protocol/envelope.ts';
import { byteLength, type Chunks, join } from '../../protocol/jsonrpc.ts';
import { MAX_TASK_ID_BYTES } from '../../protocol/scalar-limits.ts';
import { splice } from '../../protocol/splice.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Replica } from '../../upstreams/replica.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { required } from '../resolve.ts';

/** Work that a replica does for a client after it has answered the call that began it. Only that replica knows of it. */
export interface Task {
  readonly id: string;
  readonly group: Group;
  readonly replica: Replica;
  /** The name under which the client asked for it; URIs in its result are under the same one. */
  readonly place: string;
  /** Progress goes on under the token of that call: ours, and the client's. */
  readonly progress: { upstream: Upstream; token: number; given: Buffer } | undefined;
}

/** A client that begins tasks and never looks after them must not fill our memory. */
const MAX_TASKS = 1_000;

/** What a server says of a task that has begun is short. */
const LARGEST_TASK = 1024 * 1024;

/** The tasks of one client, by the ids that servers gave them. */
export class Tasks {
  private readonly byId = new Map<string, Task>();

  add(task: Task): void {
    this.byId.delete(task.id);
    this.byId.set(task.id, task);
    const [oldest] = this.byId.keys();
    if (this.byId.size > MAX_TASKS) this.byId.delete(oldest!);
  }

  /** The task that a request names. Another client's task looks like one that does not exist. */
  named(message: Message): Task {
    const id = required(message.taskId, 'taskId');
    const task = this.byId.get(id);
    if (task === undefined) throw new SwitchboardError('invalid_params', `Unknown task: ${id}`);
    return task;
  }

  find(fits: (task: Task) => boolean): Task | undefined {
    for (const task of this.byId.values()) if (fits(task)) return task;
    return undefined;
  }
}

/** The id of the task that an answer says has begun; none where nobody could ask for it. */
export function begunTask(answer: Chunks): string | undefined {
  // One that is larger begins none: a server need not do as a task what it is asked to.
  if (byteLength(answer) > LARGEST_TASK) return undefined;
  const { result } = JSON.parse(join(answer).toString()) as { result?: { task?: { taskId?: unknown } } };
  const id = result?.task?.taskId;
  return typeof id === 'string' && Buffer.byteLength(id) <= MAX_TASK_ID_BYTES ? id : undefined;
}

/** A session, as far as tasks belong to it. */
interface TaskOwner {
  tasks: Tasks | undefined;
  stream: { send(message: Chunks): void };
}

/** Passes what a server says of a task to the client whose task it is. */
export function passTaskStatus(replica: Replica, message: Message, sessions: Iterable<TaskOwner>): void {
  const id = message.taskId?.value;
  for (const session of sessions) {
    if (session.tasks?.find((task) => task.id === id && task.replica === replica) === undefined) continue;
    session.stream.send([message.bytes]);
    return;
  }
}

/** Passes progress that came after the answer of its call. */
export function passTaskProgress(upstream: Upstream, message: Message, sessions: Iterable<TaskOwner>): void {
  const place = message.progressToken;
  const token = place && idValue(message.bytes, place);
  for (const session of sessions) {
    const isIt = ({ progress }: Task) => progress?.upstream === upstream && progress.token === token;
    const given = session.tasks?.find(isIt)?.progress?.given;
    if (given === undefined) continue;
    session.stream.send([splice(message.bytes, [{ ...place!, bytes: given }])]);
    return;
  }
}

/** The token under which the client wants progress on the call that began a task. */
export function progressOf(message: Message, upstream: Upstream, token: number): Task['progress'] {
  const { bytes, wantedProgress } = message;
  // A few bytes of a large request would keep all of it.
  return wantedProgress && { upstream, token, given: Buffer.from(bytesAt(bytes, wantedProgress)) };
}
