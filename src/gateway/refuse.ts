import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { bytesAt } from '../protocol/envelope.ts';
import { errorMessage, type RequestId, toRpcError } from '../protocol/jsonrpc.ts';
import type { Incoming, InFlight, Outlet } from './session.ts';

/** Answers a request with an error of ours. */
export function refuse({ message, outlet }: Incoming, error: SwitchboardError): void {
  outlet.answer([errorMessage(bytesAt(message.bytes, message.idSpan!), toRpcError(error))]);
}

export function refuseSecondUse(incoming: Incoming): void {
  refuse(incoming, new SwitchboardError('invalid_request', 'A request with this id is under way already.'));
}

/** Holds a request until something has happened. The client may cancel it meanwhile. */
export function hold(incoming: Incoming, until: Promise<void>, goOn: () => void): void {
  const held = new HeldRequest(incoming);
  if (!incoming.session.begin(held)) {
    refuseSecondUse(incoming);
    return;
  }
  until
    .then(() => {
      if (incoming.session.finish(held)) goOn();
    })
    .catch((error: unknown) => refuse(incoming, asSwitchboardError(error)));
}

class HeldRequest implements InFlight {
  readonly server = '';
  readonly id: RequestId;
  readonly outlet: Outlet;
  private readonly incoming: Incoming;

  constructor(incoming: Incoming) {
    this.incoming = incoming;
    this.id = incoming.message.id!;
    this.outlet = incoming.outlet;
  }

  cancel(): void {
    if (this.incoming.session.finish(this)) this.outlet.end();
  }
}
