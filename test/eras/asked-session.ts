import type { EventStream, RawSession, RpcMessage } from '../helpers/raw-http.ts';

/** A call of a legacy client, which gets server requests on the stream of its call. */
export class AskedCall {
  private readonly session: RawSession;
  readonly stream: EventStream;

  private constructor(session: RawSession, stream: EventStream) {
    this.session = session;
    this.stream = stream;
  }

  static async begin(session: RawSession, name: string, given: object = {}): Promise<AskedCall> {
    return new AskedCall(session, await session.openCall(name, given, 'token'));
  }

  /** Counted from 1. */
  async question(number = 1): Promise<RpcMessage> {
    const asked = await this.stream.events.several(number, ({ message }) => isQuestion(message));
    return asked[number - 1]!.message!;
  }

  answer(question: RpcMessage, result: object): Promise<unknown> {
    return this.session.post({ jsonrpc: '2.0', id: question.id, result });
  }

  refuse(question: RpcMessage, error: object): Promise<unknown> {
    return this.session.post({ jsonrpc: '2.0', id: question.id, error });
  }

  withdrawn(question: RpcMessage): Promise<RpcMessage> {
    return this.stream.message(
      ({ method, params }) => method === 'notifications/cancelled' && params?.requestId === question.id,
    );
  }

  outcome(): Promise<RpcMessage> {
    return this.stream.message(({ method }) => method === undefined);
  }
}

function isQuestion(message: RpcMessage | undefined): boolean {
  return message?.method !== undefined && message.id !== undefined;
}
