import type { Backend } from './backend.ts';
import { newChat, readChat, runQuery } from './chat-input.ts';
import { streamChat } from './chat-stream.ts';
import { chatView, runDetails, runList } from './chat-views.ts';
import { ok } from './reply.ts';
import { type Route, route } from './route.ts';

export function chatRoutes({ chats }: Backend): Route[] {
  return [
    route({
      method: 'POST',
      path: '/projects/:project/chat',
      operationId: 'chat',
      summary: 'Ask a model that may use the tools of the project',
      text: newChat,
      isStream: 'on demand',
      answers: { 200: chatView },
      async handle({ params, text, signal }) {
        const { chat, isStream } = readChat(text);
        const run = await chats.begin(params.project, chat);
        if (isStream) return { stream: (response) => streamChat(run, response, signal) };
        return ok(await run.finish(() => {}, signal));
      },
    }),
    route({
      method: 'GET',
      path: '/projects/:project/runs',
      operationId: 'listRuns',
      summary: 'The chats that there were, the newest first',
      query: runQuery,
      answers: { 200: runList },
      handle: async ({ params, query }) => ok(await chats.runs(params.project, query)),
    }),
    route({
      method: 'GET',
      path: '/projects/:project/runs/:run',
      operationId: 'getRun',
      summary: 'One of them, with what was said and every tool call',
      answers: { 200: runDetails },
      handle: async ({ params }) => ok(await chats.run(params.project, params.run)),
    }),
  ];
}
