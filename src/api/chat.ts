import type { Backend } from './backend.ts';
import { newChat, readChat, runQuery } from './chat-input.ts';
import { streamChat } from './chat-stream.ts';
import { begunRun, chatView, runDetails, runList } from './chat-views.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { readToolBody } from './http/tool-body.ts';
import { newRun, runCalls, runChanges } from './run-input.ts';

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
    route({
      method: 'POST',
      path: '/projects/:project/runs',
      operationId: 'beginRun',
      summary: 'Tell of a run of an agent elsewhere that begins',
      text: newRun,
      answers: { 201: begunRun },
      async handle({ params, text }) {
        const run = await chats.beginRun(params.project, readToolBody(newRun, text));
        return created(run, ['projects', params.project, 'runs', run.id]);
      },
    }),
    route({
      method: 'POST',
      path: '/projects/:project/runs/:run/calls',
      operationId: 'recordRunCalls',
      summary: 'Tell of tool calls of such a run that did not go through Switchboard',
      text: runCalls,
      answers: { 204: null },
      async handle({ params, text }) {
        await chats.recordCalls(params.project, params.run, readToolBody(runCalls, text).calls);
        return noContent;
      },
    }),
    route({
      method: 'PATCH',
      path: '/projects/:project/runs/:run',
      operationId: 'changeRun',
      summary: 'Tell that such a run goes on, or what it came to',
      text: runChanges,
      answers: { 204: null },
      async handle({ params, text }) {
        await chats.changeRun(params.project, params.run, readToolBody(runChanges, text));
        return noContent;
      },
    }),
  ];
}
