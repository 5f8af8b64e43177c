import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { errorMessage, type RequestId, toRpcError } from '../protocol/jsonrpc.ts';
import { idBytes } from '../protocol/message.ts';
import { RpcResponseError } from '../upstreams/server-errors.ts';
import type { Incoming } from './caller.ts';
import type { InFlight, Responder } from './responder.ts';

/** Uses the server's own error if it gave one. */
export function reject({ caller, message, responder }: Incoming, thrown: unknown): void {
  const error =
    thrown instanceof RpcResponseError ? thrown.rpc : toRpcError(asSwitchboardError(thrown), caller.era);
  responder.respond([errorMessage(idBytes(message), error)], error.code);
}

export function rejectDuplicate(incoming: Incoming): void {
  const error = incoming.caller.isFull
    ? new SwitchboardError('server_busy', 'Too many requests of this session are in flight.')
    : new SwitchboardError('invalid_request', 'A request with this id is already in flight.');
  reject(incoming, error);
}

export function after(incoming: Incoming, ready: Promise<void> | undefined, proceed: () => void): void {
  if (ready === undefined) proceed();
  else defer(incoming, () => ready, proceed);
}

/** The client may cancel the request before `proceed`. */
export function defer(incoming: Incoming, prepare: () => Promise<void>, proceed: () => void): void {
  const deferred = new DeferredRequest(incoming);
  if (!incoming.caller.begin(deferred)) {
    rejectDuplicate(incoming);
    return;
  }
  prepare()
    .then(
      () => {
        if (incoming.caller.finish(deferred)) proceed();
      },
      (error: unknown) => deferred.fail(error),
    )
    .catch((error: unknown) => reject(incoming, error));
}

class DeferredRequest implements InFlight {
  readonly group = undefined;
  readonly awaitsClient = false;
  readonly id: RequestId;
  readonly responder: Responder;
  private readonly incoming: Incoming;

  constructor(incoming: Incoming) {
    this.incoming = incoming;
    this.id = incoming.message.id!;
    this.responder = incoming.responder;
  }

  cancel(): void {
    if (this.incoming.caller.finish(this)) this.responder.end();
  }

  fail(error: unknown): void {
    if (this.incoming.caller.finish(this)) reject(this.incoming, error);
  }
}
