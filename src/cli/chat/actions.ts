import { createInterface } from 'node:readline';
import type { ChatMessage } from '../../api/chat-messages.ts';
import type { ChatView, ToolCallView } from '../../api/chat-views.ts';
import type { SwitchboardError } from '../../errors.ts';
import { callApi, failureOf, projectPath } from '../api.ts';
import { readEvents } from '../events.ts';
import { usageError } from '../exit.ts';
import { readInput } from '../input.ts';
import type { ApiFlags } from '../options.ts';
import { printable, printJson } from '../output.ts';
import { canAsk } from '../prompt.ts';
import { ChatScreen, type Screen } from './text.ts';

interface ChatFlags extends ApiFlags {
  model?: string;
  system?: string;
  tool?: string[];
  maxSteps?: number;
  maxTokens?: number;
  apiKeySecret?: string;
}

interface Terminal extends Screen {
  stdin: NodeJS.ReadableStream;
}

/** Long, because the model and its tools have their own timeouts. */
const CHAT_TIMEOUT_MS = 24 * 60 * 60 * 1_000;

/** Sends one message, or starts a conversation on a terminal. */
export async function chat(project: string, words: string[], flags: ChatFlags): Promise<void> {
  const path = projectPath(project, 'chat');
  if (words.length === 0 && canAsk()) {
    if (flags.json) throw usageError('--json needs a message: switchboard chat <project> <message>.');
    await converse(path, flags, process);
    return;
  }
  const input = words.length > 0 ? words.join(' ') : (await readInput('-')).trim();
  if (input === '') throw usageError('There is no message: add it after the project, or pipe it in.');
  const body = { ...bodyOf(flags), input };
  if (flags.json)
    printJson(await callApi<ChatView>(flags.url, 'POST', path, { body, timeoutMs: CHAT_TIMEOUT_MS }));
  else await respond(path, flags, body, process, new AbortController().signal);
}

/** Runs until the input ends. Ctrl-C cancels the response in progress, or else ends the conversation. */
export async function converse(path: string, flags: ChatFlags, terminal: Terminal): Promise<void> {
  const { stdin: input, stderr: output } = terminal;
  const lines = createInterface({ input, output, prompt: '> ', terminal: true });
  const history: ChatMessage[] = [];
  let responding: AbortController | undefined;
  lines.on('SIGINT', () => {
    if (responding === undefined) lines.close();
    else responding.abort(new Error('The response was cancelled.'));
  });
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      responding = new AbortController();
      await exchange(path, flags, line, history, terminal, responding.signal);
      responding = undefined;
    }
    lines.prompt();
  }
}

/** A failed response keeps its messages in the conversation; a rejected or cancelled one leaves it unchanged. */
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
    const { messages } = await respond(path, flags, body, screen, signal);
    history.push({ role: 'user', content: input }, ...messages);
  } catch (error) {
    const { messages } = (error as Partial<SwitchboardError>).data ?? {};
    if (Array.isArray(messages) && messages.length > 0) {
      history.push({ role: 'user', content: input }, ...(messages as ChatMessage[]));
    }
    screen.stderr.write(`error: ${printable((error as Error).message)}\n`);
  }
}

async function respond(
  path: string,
  { url }: ChatFlags,
  body: object,
  shown: Screen,
  signal: AbortSignal,
): Promise<ChatView> {
  const screen = new ChatScreen(shown);
  let end: ChatView | Error | undefined;
  const onEvent = (type: string, data: unknown) => {
    if (type === 'text') screen.text((data as { text: string }).text);
    else if (type === 'tool_start') screen.toolStart(data as ToolCallView);
    else if (type === 'tool_end') screen.toolEnd(data as ToolCallView);
    else if (type === 'done') end = data as ChatView;
    else if (type === 'error') end = failureOf(200, data);
  };
  try {
    const { error } = await readEvents(url, path, onEvent, signal, { ...body, stream: true });
    signal.throwIfAborted();
    if (error !== undefined) throw new Error(`The connection was lost: ${error.message}`);
  } finally {
    screen.endLine();
  }
  if (end === undefined) throw new Error('The response is incomplete: the connection was closed.');
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
