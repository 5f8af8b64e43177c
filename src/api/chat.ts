import type { ServerResponse } from 'node:http';
import type { AgentEvent } from '../agent/events.ts';
import { ChatFailure, type ChatRun } from '../chats/chats.ts';
import { SwitchboardError } from '../errors.ts';
import { DEFAULT_SECRET, newChat, readChat } from './chat-input.ts';
import { agentMessages, chatEventOf, chatViewOf, messageViewOf } from './chat-view.ts';
import { type ChatView, chatView } from './chat-views.ts';
import { EventStream, eventBytes } from './http/event-stream.ts';
import { errorView, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { needDatabase } from './services.ts';

/** Far more than a model sends before a client reads it. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

export const chatRoutes: Route[] = [
  route('POST', '/projects/:project/chat', {
    operationId: 'chat',
    summary: 'Send a message to a model that can use the tools of the project',
    action: 'chat',
    body: newChat,
    read: readChat,
    isStream: 'on demand',
    answers: { 200: chatView },
    async handle({ services, sender, project, body: { chat, isStream }, signal }) {
      const { chats } = needDatabase(services);
      const { apiKeySecret: secret } = chat;
      // It is sent to the API of the model.
      if (secret !== DEFAULT_SECRET)
        services.identity.control.authorize(sender, 'secrets', project, `secret ${secret}`);
      const guards = { ...services.identity, scopes: services.projects };
      const messages = agentMessages(chat.messages);
      const run = await chats.begin(project, sender, guards, { ...chat, messages });
      if (isStream) return { stream: (response) => streamChat(run, response, signal) };
      return ok(await finishChat(run, () => {}, signal));
    },
  }),
];

/** Cancels the chat if the client disconnects or stops reading. */
function streamChat(run: ChatRun, response: ServerResponse, signal: AbortSignal): void {
  const stream = new EventStream(MAX_UNREAD_BYTES);
  stream.begin(response, eventBytes('run', { run_id: run.id }));
  const send = (type: string, data: object) => stream.send(eventBytes(type, data));
  const onEvent = (event: AgentEvent) => {
    const shown = chatEventOf(event);
    if (shown !== undefined) send(shown.type, shown.data);
  };
  finishChat(run, onEvent, signal)
    .then(
      (view) => send('done', view),
      (thrown: unknown) => send('error', { error: errorView(thrown) }),
    )
    .finally(() => stream.end());
}

async function finishChat(
  run: ChatRun,
  onEvent: (event: AgentEvent) => void,
  signal: AbortSignal,
): Promise<ChatView> {
  try {
    return chatViewOf(run.id, await run.finish(onEvent, signal));
  } catch (thrown) {
    if (!(thrown instanceof ChatFailure)) throw thrown;
    const { code, message, data, messages } = thrown;
    throw new SwitchboardError(code, message, {
      cause: thrown,
      data: { ...data, run_id: run.id, messages: messages.map(messageViewOf) },
    });
  }
}
