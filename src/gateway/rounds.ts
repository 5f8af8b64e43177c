import { bytesOf } from '../protocol/jsonrpc.ts';
import { membersAt, withoutMembers } from '../protocol/members.ts';
import type { Message } from '../protocol/message.ts';
import { stringAt } from '../protocol/modern-result.ts';
import type { Edit } from '../protocol/splice.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Incoming } from './caller.ts';
import type { CallServices } from './client-call.ts';
import { bindingOf, wrongState } from './modern/request-state.ts';
import type { Scope } from './scope.ts';

interface Round {
  only: Replica | undefined;
  edits: readonly Edit[];
}

export const firstRound: Round = { only: undefined, edits: [] };

/** Handles a modern client that returns with input. Undefined if that resumes a held call. */
export function laterRound(
  scope: Scope,
  incoming: Incoming,
  group: Group,
  services: CallServices,
): Round | undefined {
  const { caller, message } = incoming;
  if (caller.era === 'legacy') return firstRound;
  const state = stringAt(message.bytes, message.requestState!);
  if (state === undefined) throw wrongState('is not a string');
  const issued = services.states.read(state, bindingOf(caller.name, scope.project?.id, message));
  switch (issued?.kind) {
    case 'held':
      services.held.take(issued.call).resume(incoming);
      return undefined;
    case 'replica': {
      const only = group.replica(issued.server, issued.number);
      if (only === undefined) throw wrongState('is that of a server that is gone');
      return { only, edits: restoredState(message, issued.state) };
    }
    default:
      if (group.isLegacy) throw wrongState('was not issued by this Switchboard, or was changed');
      return firstRound;
  }
}

/** Restores the server's own state, or none if it gave none. */
function restoredState({ bytes, params, requestState }: Message, own: string | undefined): Edit[] {
  if (own === undefined) return withoutMembers(bytes, membersAt(bytes, params!.start, stateName).values());
  const { start, end } = requestState!;
  return [{ start, end, bytes: bytesOf(own) }];
}

const stateName: ReadonlySet<string> = new Set(['requestState']);
