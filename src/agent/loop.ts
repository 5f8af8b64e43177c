import { unlessAborted } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import { Chat } from './chat.ts';
import { chatError } from './chat-error.ts';
import type { AgentEvent, ChatResult, ToolCallRecord, ToolCallStart } from './events.ts';
import type { AgentMessage, AssistantPart, Model, Turn } from './model.ts';
import { Telling } from './telling.ts';
import { failureContent, resultContent } from './tool-results.ts';
import type { AgentTool, Toolbox, ToolOutcome } from './toolbox.ts';

export interface LoopOptions {
  model: Model;
  /** It has been started. */
  toolbox: Pick<Toolbox, 'tools' | 'call'>;
  /** What was said so far. The last one is what is to be answered. */
  messages: readonly AgentMessage[];
  system?: string | undefined;
  /** How many turns the model may have. */
  maxSteps?: number | undefined;
  /** What a tool gives beyond this is cut. */
  maxResultCharacters?: number | undefined;
  /** The tools that may be used; without it, all. */
  allows?: ((tool: AgentTool) => boolean) | undefined;
  /** Ends it: the model's turn, and the tool calls under way. */
  signal?: AbortSignal | undefined;
  /** Where it throws, the chat ends with that. */
  onEvent?: ((event: AgentEvent) => void) | undefined;
  onWarning?: ((message: string) => void) | undefined;
  /** The run that its tool calls are to be recorded under. */
  runId?: string | undefined;
}

type ToolCall = Extract<AssistantPart, { type: 'tool_call' }>;

const DEFAULT_MAX_STEPS = 50;
const DEFAULT_MAX_RESULT_CHARACTERS = 100_000;

/**
 * Lets the model speak and runs the tools that it calls, until it is done. Where it ends without an answer, it fails with a
 * `ChatError`, which has what happened until then.
 */
export async function runLoop(options: LoopOptions): Promise<ChatResult> {
  const { signal, onEvent = () => {} } = options;
  const telling = new Telling(onEvent, signal);
  const chat = new Chat(options.messages, (event) => telling.tell(event));
  try {
    return await converse(chat, telling, options);
  } catch (thrown) {
    chat.settle('The chat ended before the tool gave a result.');
    throw chatError(thrown, chat, signal);
  } finally {
    telling.end();
  }
}

async function converse(chat: Chat, telling: Telling, options: LoopOptions): Promise<ChatResult> {
  const { maxSteps = DEFAULT_MAX_STEPS } = options;
  for (let step = 1; ; step++) {
    const turn = await nextTurn(chat, telling.signal, options);
    const end = endAfter(turn, step >= maxSteps);
    const calls = turn.content.filter((part) => part.type === 'tool_call');
    chat.begin(calls.map((call) => startOf(call, step, toolOf(call, options))));
    if (end === undefined) {
      await Promise.all(
        calls.map(async (call, index) => chat.finish(index, await run(call, step, telling, options))),
      );
    }
    chat.settle(whyNotRun(end, maxSteps));
    telling.signal.throwIfAborted();
    if (end === undefined) continue;
    const { messages, toolCalls, usage } = chat;
    const result: ChatResult = {
      ...{ text: textOf(turn), messages, toolCalls, usage, steps: step, stopReason: end },
    };
    telling.tell({ type: 'done', result });
    telling.signal.throwIfAborted();
    return result;
  }
}

async function nextTurn(chat: Chat, signal: AbortSignal, options: LoopOptions): Promise<Turn> {
  const { model, toolbox, system, allows = () => true, onWarning = () => {} } = options;
  signal.throwIfAborted();
  // Asked for in each step, because servers may have changed what they offer.
  const tools = toolbox.tools().filter(allows);
  const onText = (text: string) => chat.hear(text);
  const { messages } = chat;
  try {
    const turn = await unlessAborted(
      model.turn({ system, messages, tools, signal, onText, onWarning }),
      signal,
    );
    chat.take(turn);
    return turn;
  } catch (thrown) {
    signal.throwIfAborted();
    throw modelFailure(thrown, model);
  }
}

/** Why the chat ends with this turn; undefined where it goes on. */
function endAfter({ stopReason, content }: Turn, isLast: boolean): ChatResult['stopReason'] | undefined {
  switch (stopReason) {
    case 'tools':
      if (!content.some(({ type }) => type === 'tool_call')) return 'end';
      return isLast ? 'step_limit' : undefined;
    case 'paused':
      return isLast ? 'step_limit' : undefined;
    default:
      return stopReason;
  }
}

function whyNotRun(end: ChatResult['stopReason'] | undefined, maxSteps: number): string {
  if (end === 'step_limit') return `The tool was not called: the limit of ${maxSteps} steps is reached.`;
  if (end === 'length') return 'The tool was not called: the answer with the call in it was cut off.';
  return 'The tool was not called.';
}

async function run(
  call: ToolCall,
  step: number,
  telling: Telling,
  options: LoopOptions,
): Promise<ToolCallRecord> {
  const { signal } = telling;
  const { toolbox, runId } = options;
  const { maxResultCharacters = DEFAULT_MAX_RESULT_CHARACTERS } = options;
  const tool = toolOf(call, options);
  const start = startOf(call, step, tool);
  telling.tell({ type: 'tool_start', call: start });
  signal.throwIfAborted();
  const startedAt = performance.now();
  const end = (content: ToolCallRecord['content'], isError: boolean, outcome?: ToolOutcome) => {
    const durationMs = performance.now() - startedAt;
    const record: ToolCallRecord = { ...start, content, isError, outcome, durationMs };
    telling.tell({ type: 'tool_end', call: record });
    return record;
  };
  if (tool === undefined) return end(failureContent(`Unknown tool: ${call.name}`), true);
  let outcome: ToolOutcome;
  try {
    const calling = { signal, run: runId === undefined ? undefined : { id: runId, step } };
    outcome = await unlessAborted(toolbox.call(tool, call.input, calling), signal);
  } catch (error) {
    signal.throwIfAborted();
    return end(failureContent(error instanceof Error ? error.message : String(error)), true);
  }
  return end(resultContent(outcome, maxResultCharacters), outcome.isError === true, outcome);
}

/** As the tools are now: those that the model was offered may be gone. */
function toolOf({ name }: ToolCall, { toolbox, allows = () => true }: LoopOptions): AgentTool | undefined {
  return toolbox.tools().find((tool) => tool.name === name && allows(tool));
}

function startOf({ id, name, input }: ToolCall, step: number, tool: AgentTool | undefined): ToolCallStart {
  return { id, name, server: tool?.server, input, step };
}

function textOf({ content }: Turn): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** An own model may throw anything. */
function modelFailure(thrown: unknown, { name }: Model): SwitchboardError {
  if (thrown instanceof SwitchboardError) return thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return new SwitchboardError('model_unavailable', `The model "${name}" failed: ${why}`, { cause: thrown });
}
