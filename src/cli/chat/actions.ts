import { createInterface } from 'node:readline';
import type { ChatMessage } from '../../api/chat-messages.ts';
import type { ChatView, ToolCallView } from '../../api/chat-views.ts';
import type { SwitchboardError } from '../../errors.ts';
import { callApi, failureOf, projectPath } from '../api.ts';
import { usageError } from '../exit.ts';
import { readInput } from '../input.ts';
import { printable, printJson } from '../output.ts';
import { canAsk } from '../prompt.ts';
import { postForEvents } from './stream.ts';
import { ChatScreen, type Screen } from './text.ts';

export interface ChatFlags {
  url: string;
  model?: string;
  system?: string;
  tool?: string[];
  maxSteps?: number;
  maxTokens?: number;
  apiKeySecret?: string;
  json?: boolean;
}

/** Where somebody sits. */
interface Terminal extends Screen {
  stdin: NodeJS.ReadableStream;
}

/** As long as it takes: the model and its tools have limits of their own. */
const CHAT_MS = 24 * 60 * 60 * 1_000;

/** Asks one thing, or on a terminal one after the other. */
export async function chat(project: string, words: string[], flags: ChatFlags): Promise<void> {
  const path = projectPath(project, 'chat');
  if (words.length === 0 && canAsk()) {
    if (flags.json)
      throw usageError('With --json a message is needed: switchboard chat <project> <message>.');
    await converse(path, flags, process);
    return;
  }
  const input = words.length > 0 ? words.join(' ') : (await readInput('-')).trim();
  if (input === '') throw usageError('There is no message: write it behind the project, or pipe it in.');
  const body = { ...bodyOf(flags), input };
  if (flags.json) printJson(await callApi<ChatView>(flags.url, 'POST', path, { body, timeoutMs: CHAT_MS }));
  else await answer(path, flags, body, process, new AbortController().signal);
}

/** Until the end of the input. Ctrl-C ends an answer, and without one the conversation. */
export async function converse(path: string, flags: ChatFlags, terminal: Terminal): Promise<void> {
  const { stdin: input, stderr: output } = terminal;
  const lines = createInterface({ input, output, prompt: '> ', terminal: true });
  const history: ChatMessage[] = [];
  let answering: AbortController | undefined;
  lines.on('SIGINT', () => {
    if (answering === undefined) lines.close();
    else answering.abort(new Error('The answer was ended.'));
  });
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      answering = new AbortController();
      await exchange(path, flags, line, history, terminal, answering.signal);
      answering = undefined;
    }
    lines.prompt();
  }
}

/** What happened until an answer failed stays in the conversation; one that was refused, or ended, leaves it as it was. */
async function exchange(
  path: string,
  flags: ChatFlags,
  input: string,
  history: ChatMessage[],
  screen: Screen,
  signal: AbortSignal,
): Promise<void> {
  try {
    const body = { ...bodyOf(flags), ...(history.length === 0 ? {} : { messages: history }), input };
    const { messages } = await answer(path, flags, body, screen, signal);
    history.push({ role: 'user', content: input }, ...messages);
  } catch (error) {
    const { messages } = (error as Partial<SwitchboardError>).data ?? {};
    if (Array.isArray(messages) && messages.length > 0) {
      history.push({ role: 'user', content: input }, ...(messages as ChatMessage[]));
    }
    screen.stderr.write(`error: ${printable((error as Error).message)}\n`);
  }
}

async function answer(
  path: string,
  { url }: ChatFlags,
  body: object,
  shown: Screen,
  signal: AbortSignal,
): Promise<ChatView> {
  const screen = new ChatScreen(shown);
  let end: ChatView | Error | undefined;
  const take = (type: string, data: unknown) => {
    if (type === 'text') screen.text((data as { text: string }).text);
    else if (type === 'tool_start') screen.toolStart(data as ToolCallView);
    else if (type === 'tool_end') screen.toolEnd(data as ToolCallView);
    else if (type === 'done') end = data as ChatView;
    else if (type === 'error') end = failureOf(200, data);
  };
  try {
    await postForEvents(url, path, { ...body, stream: true }, take, signal);
  } finally {
    screen.endLine();
  }
  if (end === undefined) throw new Error('The answer broke off.');
  if (end instanceof Error) throw end;
  screen.done(end);
  return end;
}

function bodyOf({ model, system, tool, maxSteps, maxTokens, apiKeySecret }: ChatFlags): object {
  return {
    ...{ model, system, tools: tool },
    ...{ max_steps: maxSteps, max_tokens: maxTokens, api_key_secret: apiKeySecret },
  };
}
