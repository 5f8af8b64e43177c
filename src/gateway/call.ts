import { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/envelope.ts';
import { bytesOf } from '../protocol/jsonrpc.ts';
import { membersAt, withoutMembers } from '../protocol/members.ts';
import { stringAt } from '../protocol/modern-result.ts';
import type { Edit } from '../protocol/splice.ts';
import { Delivery } from '../upstreams/delivery.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { RoutedRequest } from '../upstreams/routed-request.ts';
import type { CallContext, CallDesk } from './call-context.ts';
import { readWishes } from './call-options.ts';
import type { Incoming } from './caller.ts';
import { ClientCall } from './client-call.ts';
import { hold } from './hold.ts';
import type { Session } from './legacy/caller.ts';
import { Tasks } from './legacy/tasks.ts';
import { checkParameters } from './modern/header-checks.ts';
import { bindingOf, wrong } from './modern/request-state.ts';
import { taskOf } from './modern/tasks.ts';
import { refuse, refuseSecondUse } from './refuse.ts';
import { required, resolve, type Target, unknownTarget } from './resolve.ts';
import type { Scope } from './scope.ts';

/** One client request on its way through one server: resolve, hand over to a group, map the answer back. */
export function call(scope: Scope, incoming: Incoming, desk: CallDesk): void {
  const target = find(scope, incoming);
  if (target !== undefined) forward(scope, incoming, target, desk);
  else callOnceDiscovered(scope, incoming, desk);
}

function find(scope: Scope, incoming: Incoming): Target | undefined {
  return resolve(scope.catalog, incoming.message) ?? resolveFormer(scope, incoming);
}

/** The client may have been shown a name that is listed under another now. */
function resolveFormer(scope: Scope, { caller: { listedAt }, message }: Incoming): Target | undefined {
  const former = {
    tool: (name: string) => scope.former('tools', name, listedAt),
    prompt: (name: string) => scope.former('prompts', name, listedAt),
    resource: () => undefined,
  };
  return resolve(former, message);
}

/** The first call may come before anybody has asked for a list. */
function callOnceDiscovered(scope: Scope, incoming: Incoming, desk: CallDesk): void {
  const forwardOrRefuse = () => {
    const target = find(scope, incoming);
    if (target !== undefined) forward(scope, incoming, target, desk);
    else refuseUnknown(scope, incoming);
  };
  const discovered = scope.discovered();
  if (discovered === undefined) forwardOrRefuse();
  else hold(incoming, () => discovered, forwardOrRefuse);
}

/** What it is about may be that of a server that never was there: then the call failed because of that. */
function refuseUnknown(scope: Scope, incoming: Incoming): void {
  const error = unknownTarget(incoming.message, scope.unlisted);
  if (error.code === 'server_unavailable') {
    const server = scope.servers().find(({ name }) => name === error.data.server);
    if (server !== undefined)
      scope.groupOf(server.project.id, server.name)?.group.callMissed(server.name, error);
  }
  refuse(incoming, error);
}

function forward(scope: Scope, incoming: Incoming, { route, kind, edits }: Target, desk: CallDesk): void {
  const { caller, message, prefer } = incoming;
  const group = scope.group(route.group);
  if (group === undefined) {
    refuse(incoming, unknownTarget(message, scope.unlisted));
    return;
  }
  if (incoming.headers !== undefined) checkParameters(incoming.headers, message, group, route.own);
  const round = message.requestState === undefined ? noRound : laterRound(scope, incoming, group, desk);
  if (round === undefined) return;
  const { own, server, among } = route;
  const { labels, timeoutMs, run } = readWishes(message, prefer);
  deliver(
    incoming,
    desk,
    { group, place: route.place, catalog: scope.catalog, project: scope.project?.id, run },
    {
      client: caller.identity,
      kind,
      own,
      server,
      among,
      labels,
      only: round.only,
      message,
      edits: round.edits.length === 0 ? edits : [...edits, ...round.edits],
      description: caller.facts,
      sender: caller.sender,
      // A task that was begun twice would be done twice, whatever the tool says of itself.
      isRepeatable: route.isRepeatable && message.task === undefined,
      timeoutMs,
    },
  );
}

interface Round {
  only: Replica | undefined;
  edits: readonly Edit[];
}

const noRound: Round = { only: undefined, edits: [] };

/** A client of the modern era comes back with what it was asked for. Undefined where a call has waited for that. */
function laterRound(scope: Scope, incoming: Incoming, group: Group, desk: CallDesk): Round | undefined {
  const { caller, message } = incoming;
  if (caller.era === 'legacy') return noRound;
  const state = stringAt(message.bytes, message.requestState!);
  if (state === undefined) throw wrong('is not a string');
  const binding = bindingOf(caller.name, scope.project?.id, message);
  const issued = desk.states.read(state, binding);
  switch (issued?.kind) {
    case 'held':
      desk.held.take(issued.call).resume(incoming);
      return undefined;
    case 'replica': {
      const only = group.replica(issued.server, issued.number);
      if (only === undefined) throw wrong('is that of a server that is gone');
      return { only, edits: stateAsItWas(message, issued.state) };
    }
    default:
      if (group.isLegacy) throw wrong('was not given out here, or was changed');
      return noRound;
  }
}

/** The server gets its own state back, or none where it gave none. */
function stateAsItWas({ bytes, params, requestState }: Message, own: string | undefined): Edit[] {
  if (own === undefined) return withoutMembers(bytes, membersAt(bytes, params!.start, stateName).values());
  const { start, end } = requestState!;
  return [{ start, end, bytes: bytesOf(own) }];
}

const stateName: ReadonlySet<string> = new Set(['requestState']);

/** What is asked of a task of the legacy era goes to the one that does it. */
export function callTask(scope: Scope, incoming: Incoming<Session>, desk: CallDesk): void {
  const { caller, message } = incoming;
  const { group, replica, place } = (caller.tasks ?? noTasks).named(message);
  const context = { group, place, catalog: scope.catalog, project: undefined };
  askTask(incoming, desk, context, replica, message.taskId?.value ?? '', []);
}

/** The same for the modern era, in which the task's id says whose it is. */
export function callModernTask(scope: Scope, incoming: Incoming, desk: CallDesk): void {
  const { message } = incoming;
  const id = required(message.taskId, 'taskId');
  const task = taskOf(id);
  const home = task && scope.groupOf(task.project, task.server);
  const replica = task && home?.group.replica(task.server, task.number);
  if (task === undefined || home === undefined || replica === undefined)
    throw new SwitchboardError('invalid_params', `Unknown task: ${id}`);
  const { start, end } = message.taskId!;
  const edits = [{ start, end, bytes: bytesOf(task.own) }];
  const { place, group } = home;
  const context = { group, place, catalog: scope.catalog, project: scope.project?.id };
  askTask(incoming, desk, context, replica, task.own, edits);
}

const noTasks = new Tasks();

function askTask(
  incoming: Incoming,
  desk: CallDesk,
  context: CallContext,
  replica: Replica,
  own: string,
  edits: readonly Edit[],
): void {
  const { caller, message, prefer } = incoming;
  const { timeoutMs } = readWishes(message, prefer);
  deliver(incoming, desk, context, {
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
    // A result is waited for as long as the task takes.
    timeoutMs: timeoutMs ?? (message.method === 'tasks/result' ? Number.POSITIVE_INFINITY : undefined),
  });
}

function deliver(incoming: Incoming, desk: CallDesk, context: CallContext, request: RoutedRequest): void {
  const clientCall = new ClientCall(incoming, desk, context, request);
  if (!incoming.caller.begin(clientCall)) {
    refuseSecondUse(incoming);
    return;
  }
  clientCall.deliver(new Delivery(context.group, request, clientCall));
}
