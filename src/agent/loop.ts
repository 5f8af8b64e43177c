import { unlessAborted } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import { Chat } from './chat.ts';
import { chatError } from './chat-error.ts';
import {
  type AgentEvent,
  ChatEvents,
  type ChatResult,
  type ToolCallRecord,
  type ToolCallStart,
} from './events.ts';
import { type AgentMessage, type AssistantPart, type Model, type Turn, textOf } from './model.ts';
import { failureContent, resultContent } from './tool-results.ts';
import type { AgentTool, Toolbox, ToolOutcome } from './toolbox.ts';

export interface LoopOptions {
  model: Model;
  /** Already started. */
  toolbox: Pick<Toolbox, 'tools' | 'call'>;
  /** The model responds to the last message. */
  messages: readonly AgentMessage[];
  system?: string | undefined;
  maxSteps?: number | undefined;
  /** Longer tool results are truncated. */
  maxResultCharacters?: number | undefined;
  /** Which tools may be used; all by default. */
  allows?: ((tool: AgentTool) => boolean) | undefined;
  /** Cancels the chat: the model's turn, and the tool calls in flight. */
  signal?: AbortSignal | undefined;
  /** If it throws, the chat fails. */
  onEvent?: ((event: AgentEvent) => void) | undefined;
  onWarning?: ((message: string) => void) | undefined;
  /** The run that its tool calls are recorded under. */
  runId?: string | undefined;
}

type ToolCall = Extract<AssistantPart, { type: 'tool_call' }>;

const DEFAULT_MAX_STEPS = 50;
const DEFAULT_MAX_RESULT_CHARACTERS = 100_000;

/** Alternates between turns of the model and tool calls until the model is done. Rejects with a `ChatError`. */
export async function runLoop(options: LoopOptions): Promise<ChatResult> {
  const { signal, onEvent = () => {} } = options;
  const events = new ChatEvents(onEvent, signal);
  const chat = new Chat(options.messages, (event) => events.emit(event));
  try {
    return await converse(chat, events, options);
  } catch (thrown) {
    chat.settleCalls('The chat ended before the tool returned a result.');
    throw chatError(thrown, chat, signal);
  } finally {
    events.end();
  }
}

async function converse(chat: Chat, events: ChatEvents, options: LoopOptions): Promise<ChatResult> {
  const { maxSteps = DEFAULT_MAX_STEPS } = options;
  for (let step = 1; ; step++) {
    const turn = await nextTurn(chat, events.signal, options);
    const end = endAfter(turn, step >= maxSteps);
    const calls = turn.content.filter((part) => part.type === 'tool_call');
    chat.beginCalls(calls.map((call) => startOf(call, step, toolOf(call, options))));
    if (end === undefined) {
      await Promise.all(
        calls.map(async (call, index) => chat.finishCall(index, await runTool(call, step, events, options))),
      );
    }
    chat.settleCalls(whyNotRun(end, maxSteps));
    events.signal.throwIfAborted();
    if (end === undefined) continue;
    const { messages, toolCalls, usage } = chat;
    const result: ChatResult = {
      ...{ text: textOf(turn.content), messages, toolCalls, usage, steps: step, stopReason: end },
    };
    events.emit({ type: 'done', result });
    events.signal.throwIfAborted();
    return result;
  }
}

async function nextTurn(chat: Chat, signal: AbortSignal, options: LoopOptions): Promise<Turn> {
  const { model, toolbox, system, allows = () => true, onWarning = () => {} } = options;
  signal.throwIfAborted();
  // In each step, because servers may change their tools.
  const tools = toolbox.tools().filter(allows);
  const onText = (text: string) => chat.addText(text);
  const { messages } = chat;
  try {
    const turn = await unlessAborted(
      model.turn({ system, messages, tools, signal, onText, onWarning }),
      signal,
    );
    chat.addTurn(turn);
    return turn;
  } catch (thrown) {
    signal.throwIfAborted();
    throw modelFailure(thrown, model);
  }
}

/** Why the chat ends with this turn; undefined if it continues. */
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
  if (end === 'step_limit') return `The tool was not called: the limit of ${maxSteps} steps was reached.`;
  if (end === 'length') return 'The tool was not called: the response with the call was truncated.';
  return 'The tool was not called.';
}

async function runTool(
  call: ToolCall,
  step: number,
  events: ChatEvents,
  options: LoopOptions,
): Promise<ToolCallRecord> {
  const { signal } = events;
  const { toolbox, runId } = options;
  const { maxResultCharacters = DEFAULT_MAX_RESULT_CHARACTERS } = options;
  const tool = toolOf(call, options);
  const start = startOf(call, step, tool);
  events.emit({ type: 'tool_start', call: start });
  signal.throwIfAborted();
  const startedAt = performance.now();
  const end = (content: ToolCallRecord['content'], isError: boolean, outcome?: ToolOutcome) => {
    const durationMs = performance.now() - startedAt;
    const record: ToolCallRecord = { ...start, content, isError, outcome, durationMs };
    events.emit({ type: 'tool_end', call: record });
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

/** Among the current tools, which may have changed since the model's turn. */
function toolOf({ name }: ToolCall, { toolbox, allows = () => true }: LoopOptions): AgentTool | undefined {
  return toolbox.tools().find((tool) => tool.name === name && allows(tool));
}

function startOf({ id, name, input }: ToolCall, step: number, tool: AgentTool | undefined): ToolCallStart {
  return { id, name, server: tool?.server, input, step };
}

/** A custom model may throw any value. */
function modelFailure(thrown: unknown, { name }: Model): SwitchboardError {
  if (thrown instanceof SwitchboardError) return thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return new SwitchboardError('model_unavailable', `The model "${name}" failed: ${why}`, { cause: thrown });
}
