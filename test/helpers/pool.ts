import { HttpBackend } from './http-backend.ts';
import { RawSession, type RpcMessage } from './raw-http.ts';
import { type Answerer, allReady, tally } from './server-states.ts';
import { type RunningSwitchboard, startSwitchboard } from './switchboard.ts';

export interface Pool extends AsyncDisposable {
  backends: Record<string, HttpBackend>;
  switchboard: RunningSwitchboard;
  session: RawSession;
}

export async function startPool(members: Record<string, object>, settings: object = {}): Promise<Pool> {
  const names = Object.keys(members);
  const started = await Promise.all(
    names.map(async (name) => [name, await HttpBackend.start(name)] as const),
  );
  const backends = Object.fromEntries(started);
  const switchboard = await startSwitchboard(
    Object.fromEntries(
      names.map((name) => [
        name,
        { url: backends[name]!.url, group: 'pool', startup: 'parallel', ...members[name] },
      ]),
    ),
    { backoffFirstMs: 20, backoffMaxMs: 20, breakerFailures: 1_000, ...settings },
  );
  await allReady(switchboard, Object.fromEntries(names.map((name) => [name, 1])));
  return {
    backends,
    switchboard,
    session: await RawSession.open(switchboard.url),
    async [Symbol.asyncDispose]() {
      await switchboard.stop();
      for (const [, backend] of started) await backend[Symbol.asyncDispose]();
    },
  };
}

export function answerer({ result, error }: RpcMessage): string {
  if (error !== undefined) throw new Error(error.message);
  const [{ text }] = result!.content as [{ text: string }];
  return (JSON.parse(text) as Answerer).name;
}

/** Counts how many of these sequential calls each server answered. */
export async function answerers(count: number, call: (index: number) => Promise<RpcMessage>) {
  const names: string[] = [];
  for (let index = 0; index < count; index++) names.push(answerer(await call(index)));
  return Object.fromEntries(tally(names));
}
