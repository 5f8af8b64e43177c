import type { SwitchboardError } from '../../errors.ts';
import { type Chunks, errorMessage, toRpcError } from '../../protocol/jsonrpc.ts';
import { withoutLineBreaks } from '../../protocol/sse.ts';

/** What a message may have at the most, in either direction. */
export const MAX_BYTES = 64 * 1024 * 1024;

/** One message for the client, as a line. */
export function toClient(chunks: Chunks): void {
  process.stdout.write(Buffer.concat([...chunks.map(withoutLineBreaks), Buffer.from('\n')]));
}

/** Answers a message whose id is not known. */
export function refuse(error: SwitchboardError): void {
  toClient([errorMessage(undefined, toRpcError(error))]);
}

/** As if the client had closed stdin: there is nothing more to do for it. */
export function hangUp(): void {
  process.stdin.emit('end');
}
