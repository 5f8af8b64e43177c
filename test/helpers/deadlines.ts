import type { RawSession, RpcMessage } from './raw-http.ts';

const timeoutKey = 'dev.switchboard/timeoutMs';

/** Calls a tool with a client timeout. */
export function callWithin(
  session: RawSession,
  timeoutMs: unknown,
  name: string,
  toolArguments: object = {},
): Promise<RpcMessage> {
  const params = { name, arguments: toolArguments, _meta: { [timeoutKey]: timeoutMs } };
  return session.request('tools/call', params);
}

/** Resolves when Switchboard has timed out a call with this timeout. */
export async function timePasses(session: RawSession, milliseconds: number): Promise<void> {
  const { error } = await callWithin(session, milliseconds, 'hang');
  if (error?.data?.code !== 'call_timeout') throw new Error(`The clock is broken: ${error?.message}`);
}
