import {
  ElicitRequestSchema,
  ListRootsRequestSchema,
  type Notification,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { type ConnectedClient, connectHttp, textOf } from '../helpers/clients.ts';
import { referenceServer, startEverything, startSwitchboard } from '../helpers/switchboard.ts';

const stdioServer = referenceServer('everything');
const askUser = { name: 'trigger-elicitation-request' };

/** A client whose user has this name; its response can be delayed. */
function connectUser(url: string, name: string, answering: Promise<unknown> = Promise.resolve()) {
  let asked = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const connecting = connectHttp(url, { elicitation: {} }, (client) => {
    client.setRequestHandler(ElicitRequestSchema, async () => {
      asked();
      await answering;
      return { action: 'accept', content: { name } };
    });
  });
  return { connecting, isAsked };
}

/** Keeps a call of the client in flight until it is aborted. */
async function keepBusy({ client }: ConnectedClient): Promise<AsyncDisposable> {
  const patience = new AbortController();
  const started = Promise.withResolvers<void>();
  const call = client
    .callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 600, steps: 12_000 } },
      undefined,
      {
        signal: patience.signal,
        onprogress: () => started.resolve(),
      },
    )
    .catch(() => {});
  await started.promise;
  return {
    async [Symbol.asyncDispose]() {
      patience.abort();
      await call;
    },
  };
}

/** Both clients are asked before either responds, and each call gets its own client's response. */
async function expectEachToBeAsked(url: string): Promise<void> {
  const bothAsked = Promise.withResolvers<void>();
  const ada = connectUser(url, 'Ada', bothAsked.promise);
  const grace = connectUser(url, 'Grace', bothAsked.promise);
  await using first = await ada.connecting;
  await using second = await grace.connecting;
  const answers = Promise.all([first, second].map(({ client }) => client.callTool(askUser)));
  await Promise.all([ada.isAsked, grace.isAsked]);
  bothAsked.resolve();
  const [ofAda, ofGrace] = (await answers).map(textOf);
  expect(ofAda).toContain('- Name: Ada');
  expect(ofGrace).toContain('- Name: Grace');
}

describe.concurrent('a server request', () => {
  it('over stdio fails with an error while two clients are connected, because either could be meant', async () => {
    await using switchboard = await startSwitchboard({ everything: stdioServer });
    await using asking = await connectUser(switchboard.url, 'Ada').connecting;
    await using busy = await connectUser(switchboard.url, 'Grace').connecting;
    {
      await using _call = await keepBusy(busy);
      const result = await asking.client.callTool(askUser);
      expect(result.isError).toBe(true);
      expect(textOf(result)).toContain('not clear which client it is for');
      expect(textOf(result)).toContain('"isolation": "session"');
    }
    // The cancelled call may still run and ask, so the target stays ambiguous for a while.
    const afterCancel = await asking.client.callTool(askUser);
    expect(textOf(afterCancel)).toContain('not clear which client it is for');
  });

  it('over stdio with "isolation": "session" reaches the client of each process', async () => {
    await using switchboard = await startSwitchboard({
      everything: { ...stdioServer, isolation: 'session' },
    });
    await expectEachToBeAsked(switchboard.url);
  });

  it('over streamable HTTP reaches the client of the call, however many are connected', async () => {
    await using server = await startEverything('streamableHttp');
    await using switchboard = await startSwitchboard({ everything: { url: server.url } });
    await expectEachToBeAsked(switchboard.url);
  });

  it('fails if the client does not support it', async () => {
    await using switchboard = await startSwitchboard({ everything: stdioServer });
    await using mute = await connectHttp(switchboard.url);
    const result = await mute.client.callTool(askUser);
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain('The client does not support elicitation.');
  });

  it('follows when the roots of the only client change', async () => {
    await using switchboard = await startSwitchboard({ everything: stdioServer });
    let root = 'file:///before';
    await using connected = await connectHttp(switchboard.url, { roots: { listChanged: true } }, (client) => {
      client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: root }] }));
    });
    const { client, notifications } = connected;
    expect(textOf(await client.callTool({ name: 'get-roots-list' }))).toContain('file:///before');
    root = 'file:///after';
    await client.sendRootsListChanged();
    // The server logs after it has asked again.
    const isUpdate = ({ method, params }: Notification) =>
      method === 'notifications/message' && String(params?.data).startsWith('Roots updated');
    for (;;) {
      const updated = notifications.next(isUpdate);
      const roots = textOf(await client.callTool({ name: 'get-roots-list' }));
      if (roots.includes('file:///after')) break;
      await updated;
    }
  });
});
