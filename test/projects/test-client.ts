import { expect } from 'vitest';
import { type EventStream, type RawEvent, RawSession, type RpcMessage } from '../helpers/raw-http.ts';

type Kind = 'tools' | 'resources' | 'prompts';

const listMethods = {
  tools: 'tools/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  prompts: 'prompts/list',
} as const;

export interface Listed {
  name: string;
  uri?: string;
  uriTemplate?: string;
  _meta: Record<string, unknown>;
}

/** A connected client: one session with its standing stream. */
export class TestClient {
  readonly session: RawSession;
  readonly stream: EventStream;

  private constructor(session: RawSession, stream: EventStream) {
    this.session = session;
    this.stream = stream;
  }

  static async open(url: string): Promise<TestClient> {
    const session = await RawSession.open(url);
    return new TestClient(session, await session.listen());
  }

  async list(kind: keyof typeof listMethods, params: object = {}): Promise<Listed[]> {
    const { result, error } = await this.session.request(listMethods[kind], params);
    if (error !== undefined) throw new Error(error.message);
    return result![kind] as Listed[];
  }

  tools(): Promise<string[]> {
    return this.session.toolNames();
  }

  /** The names of the tools, listed again after each announced change until the list fits. */
  async toolsOnce(fits: (names: string[]) => boolean): Promise<string[]> {
    for (;;) {
      const announced = this.announced('tools');
      const names = await this.tools();
      if (fits(names)) return names;
      await announced;
    }
  }

  /** Makes a change that is announced to clients, and returns the tools listed after the announcement. */
  async toolsAfter(
    change: () => Promise<unknown>,
    fits: (names: string[]) => boolean = () => true,
  ): Promise<string[]> {
    const announced = this.announced('tools');
    await change();
    await announced;
    return this.toolsOnce(fits);
  }

  /** Adds a server, and settles when its addition and its discovered features are both announced. */
  async settled(add: () => Promise<unknown>): Promise<string[]> {
    const arrived = this.announced('tools');
    await add();
    await arrived;
    const isKnown = this.announced('tools');
    const names = await this.tools();
    await isKnown;
    return names;
  }

  /** The next list-changed notification for this list. */
  announced(kind: Kind): Promise<RawEvent> {
    return this.stream.events.next(({ message }) => message?.method === `notifications/${kind}/list_changed`);
  }

  /** All messages of this method on the standing stream. */
  told(method: string): RpcMessage[] {
    return this.stream.messages.filter((message) => message.method === method);
  }

  /** A call in flight that finishes when the witness orders it. */
  async waitingCall(tool = 'wait', order = 'go'): Promise<EventStream> {
    const call = await this.session.openCall(tool, { order }, 'token');
    await call.message(({ method }) => method === 'notifications/progress');
    return call;
  }

  async errorOf(tool: string): Promise<NonNullable<RpcMessage['error']>> {
    const { error } = await this.session.call(tool);
    expect(error).toBeDefined();
    return error!;
  }
}

/** The text result of a call that was in flight. */
export async function textOfCall(call: EventStream): Promise<string> {
  const { result, error } = await call.message(({ id }) => id !== undefined);
  if (error !== undefined) throw new Error(error.message);
  return (result!.content as { text: string }[])[0]!.text;
}
