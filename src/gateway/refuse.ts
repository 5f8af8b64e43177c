import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { idBytes } from '../protocol/envelope.ts';
import { errorMessage, toRpcError } from '../protocol/jsonrpc.ts';
import { RpcResponseError } from '../upstreams/server-errors.ts';
import type { Incoming } from './caller.ts';

/** Answers a request with an error: the server's own where it gave one, else ours. */
export function refuse({ caller, message, responder }: Incoming, thrown: unknown): void {
  const error =
    thrown instanceof RpcResponseError ? thrown.rpc : toRpcError(asSwitchboardError(thrown), caller.era);
  responder.respond([errorMessage(idBytes(message), error)], error.code);
}

/** A request that its client could not begin. */
export function refuseSecondUse(incoming: Incoming): void {
  if (incoming.caller.isFull) {
    refuse(incoming, new SwitchboardError('server_busy', 'Too many requests of this session are under way.'));
    return;
  }
  refuse(incoming, new SwitchboardError('invalid_request', 'A request with this id is under way already.'));
}
