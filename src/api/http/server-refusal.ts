import { SwitchboardError } from '../../errors.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { httpStatusOf } from './rpc-status.ts';

/** A server's own error as the API's, with all that it said kept. */
export class ServerRefusal extends SwitchboardError {
  readonly status: number;

  /** `errorText` is the error as the server sent it. */
  constructor(errorText: string) {
    const rpc = parseLossless(errorText) as { code?: unknown; message?: unknown } | null;
    const message = typeof rpc?.message === 'string' && rpc.message !== '' ? rpc.message : 'It said error.';
    super('server_error', message, { data: { rpc } });
    this.status = httpStatusOf(typeof rpc?.code === 'number' ? rpc.code : Number.NaN);
  }
}
