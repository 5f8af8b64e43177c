import type { FastClient } from './fast-client.ts';
import type { RpcMessage } from './raw-http.ts';
import type { Answerer } from './server-states.ts';

export interface LoadResult {
  /** Unique per call. */
  key: string;
  by: Answerer | undefined;
  error: RpcMessage['error'];
}

/** Calls an echo tool with this concurrency while `goesOn` returns true. */
export async function load(
  client: FastClient,
  tool: 'echo' | 'count',
  atOnce: number,
  goesOn: (made: number) => boolean,
): Promise<LoadResult[]> {
  const results: LoadResult[] = [];
  let made = 0;
  const call = async (): Promise<LoadResult> => {
    const id = ++made;
    const key = `call ${id}`;
    const given = tool === 'echo' ? { text: key } : { key, delayMs: 5 };
    const { id: answered, result, error } = (await client.call(id, tool, given)) as RpcMessage;
    if (answered !== id) throw new Error(`${key} got the answer to ${String(answered)}`);
    if (error !== undefined) return { key, by: undefined, error };
    const [{ text }] = result!.content as [{ text: string }];
    const { text: brought, ...by } = JSON.parse(text) as Answerer & { text: string };
    if (brought !== key) throw new Error(`${key} got the answer to ${brought}`);
    return { key, by, error };
  };
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (goesOn(made)) results.push(await call());
    }),
  );
  return results;
}
