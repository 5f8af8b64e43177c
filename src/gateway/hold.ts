import type { SwitchboardError } from '../errors.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Incoming, InFlight, Responder } from './caller.ts';
import { refuse, refuseSecondUse } from './refuse.ts';

/**
 * Holds a request until something has happened, which nothing is done for where the request is refused. The client may cancel it
 * meanwhile.
 */
export function hold(incoming: Incoming, until: () => Promise<void>, goOn: () => void): void {
  const held = new HeldRequest(incoming);
  if (!incoming.caller.begin(held)) {
    refuseSecondUse(incoming);
    return;
  }
  until()
    .then(
      () => {
        if (incoming.caller.finish(held)) goOn();
      },
      (error: unknown) => {
        if (incoming.caller.finish(held)) refuse(incoming, error);
      },
    )
    .catch((error: unknown) => refuse(incoming, error));
}

class HeldRequest implements InFlight {
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

  fail(error: SwitchboardError): void {
    if (this.incoming.caller.finish(this)) refuse(this.incoming, error);
  }
}
