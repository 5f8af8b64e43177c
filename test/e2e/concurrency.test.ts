import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { connectHttp, connectSse, textOf } from '../helpers/clients.ts';
import { FastClient } from '../helpers/fast-client.ts';
import { fixtureServer, referenceServer, startEverything, startSwitchboard } from '../helpers/switchboard.ts';

/** Runs the tasks with at most `atOnce` in flight. */
async function runAll(tasks: (() => Promise<void>)[], atOnce: number): Promise<void> {
  const left = tasks.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const task of left) await task();
    }),
  );
}

it('10,000 calls of two clients with the same ids each get their own response [A13]', async () => {
  await using switchboard = await startSwitchboard({ shuffling: fixtureServer('reverses-responses') });
  await using ada = await FastClient.connect(switchboard.url);
  await using grace = await FastClient.connect(switchboard.url);
  const numbers = Array.from({ length: 2_500 }, (_, index) => index + 1);
  // 7 and "7" are different ids, and both may be in flight at once.
  const ids = numbers.flatMap((number) => [number, String(number)]);
  const mixedUp: unknown[] = [];
  let answered = 0;

  const tasks = ids.flatMap((id) =>
    Object.entries({ ada, grace }).map(([name, client]) => async () => {
      const brought = { of: name, id, type: typeof id };
      const answer = await client.call(id, 'echo', brought);
      answered++;
      const expected = {
        jsonrpc: '2.0',
        id,
        result: { content: [{ type: 'text', text: JSON.stringify(brought) }] },
      };
      if (!isDeepStrictEqual(answer, expected)) mixedUp.push({ brought, answer });
    }),
  );
  await runAll(tasks, 64);
  expect(mixedUp).toEqual([]);
  expect(answered).toBe(10_000);
});

it('many clients call many servers at the same time, and each gets its own responses [A13]', async () => {
  await using everything = await startEverything('streamableHttp');
  await using switchboard = await startSwitchboard({
    shuffling: fixtureServer('reverses-responses'),
    stdio: referenceServer('everything'),
    http: { url: everything.url },
  });
  const clients = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      index % 2 === 0 ? connectHttp(switchboard.url) : connectSse(`${switchboard.baseUrl}/sse`),
    ),
  );
  // Every SDK client counts ids and progress tokens from the same number.
  const answers = await Promise.all(
    clients.flatMap(({ client }, of) =>
      ['shuffling__echo', 'stdio__echo', 'http__echo'].flatMap((name) =>
        Array.from({ length: 10 }, async (_, call) => {
          const message = `call ${call} of client ${of} to ${name}`;
          const result = await client.callTool({ name, arguments: { message } });
          return { message, text: textOf(result) };
        }),
      ),
    ),
  );
  expect(answers.filter(({ message, text }) => !text.includes(message))).toEqual([]);
  expect(answers).toHaveLength(8 * 3 * 10);
  for (const client of clients) await client[Symbol.asyncDispose]();
});

it('progress goes to the client of the call, even if two clients use the same token [A13]', async () => {
  await using switchboard = await startSwitchboard({ everything: referenceServer('everything') });
  await using one = await connectHttp(switchboard.url);
  await using other = await connectHttp(switchboard.url);
  const progressOf = async ({ client }: typeof one, steps: number) => {
    const seen: unknown[] = [];
    await client.callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps } },
      undefined,
      { onprogress: (progress) => seen.push(progress) },
    );
    return seen;
  };
  const [ofOne, ofOther] = await Promise.all([progressOf(one, 2), progressOf(other, 5)]);
  expect(ofOne).toEqual([1, 2].map((progress) => ({ progress, total: 2 })));
  expect(ofOther).toEqual([1, 2, 3, 4, 5].map((progress) => ({ progress, total: 5 })));
});
