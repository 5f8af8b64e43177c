import type { AgentEvent, ChatResult, ToolCallRecord, ToolCallStart } from './events.ts';
import type { AgentMessage, AssistantPart, Model, Turn, Usage } from './model.ts';
import { failureContent, resultContent } from './tool-results.ts';
import type { AgentTool, Toolbox, ToolOutcome } from './toolbox.ts';
import { unlessAborted } from './unless-aborted.ts';

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
  /** Ends it: the model's turn, and the tool calls under way. It fails with the signal's reason then. */
  signal?: AbortSignal | undefined;
  onEvent?: ((event: AgentEvent) => void) | undefined;
}

type ToolCall = Extract<AssistantPart, { type: 'tool_call' }>;

const DEFAULT_MAX_STEPS = 50;
const DEFAULT_MAX_RESULT_CHARACTERS = 100_000;

/** Lets the model speak and runs the tools that it calls, until it is done. */
export async function runLoop(options: LoopOptions): Promise<ChatResult> {
  const { model, toolbox, system, signal, maxSteps = DEFAULT_MAX_STEPS } = options;
  const { allows = () => true, onEvent = () => {} } = options;
  const messages = [...options.messages];
  const toolCalls: ToolCallRecord[] = [];
  const usage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  for (let step = 1; ; step++) {
    signal?.throwIfAborted();
    const join = (message: AgentMessage) => {
      messages.push(message);
      onEvent({ type: 'message', step, message });
    };
    // Asked for in each step, because servers may have changed what they offer.
    const tools = toolbox.tools().filter(allows);
    const onText = (text: string) => onEvent({ type: 'text', step, text });
    const turn = await model.turn({ system, messages, tools, signal, onText });
    signal?.throwIfAborted();
    add(usage, turn.usage);
    join(messageOf(turn));
    onEvent({ type: 'step', step, stopReason: turn.stopReason, usage: turn.usage });

    const end = endAfter(turn, step >= maxSteps);
    const calls = turn.content.filter((part) => part.type === 'tool_call');
    if (calls.length > 0) {
      // A conversation in which a call has no result cannot be gone on with, so those that are not run get one too.
      const records =
        end === undefined
          ? await Promise.all(calls.map((call) => run(call, step, options)))
          : calls.map((call) => leaveOut(call, step, toolOf(call, options), whyNotRun(end, maxSteps)));
      toolCalls.push(...records);
      join({
        role: 'user',
        content: records.map(({ id, content, isError }) => ({ type: 'tool_result', id, content, isError })),
      });
    }
    if (end === undefined) continue;
    const result: ChatResult = {
      ...{ text: textOf(turn), messages, toolCalls, usage, steps: step, stopReason: end },
    };
    onEvent({ type: 'done', result });
    return result;
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

function whyNotRun(end: ChatResult['stopReason'], maxSteps: number): string {
  if (end === 'step_limit') return `The tool was not called: the limit of ${maxSteps} steps is reached.`;
  if (end === 'length') return 'The tool was not called: the answer with the call in it was cut off.';
  return 'The tool was not called.';
}

async function run(call: ToolCall, step: number, options: LoopOptions): Promise<ToolCallRecord> {
  const { toolbox, signal, onEvent = () => {} } = options;
  const { maxResultCharacters = DEFAULT_MAX_RESULT_CHARACTERS } = options;
  const tool = toolOf(call, options);
  const start = startOf(call, step, tool);
  onEvent({ type: 'tool_start', call: start });
  const startedAt = performance.now();
  const end = (content: ToolCallRecord['content'], isError: boolean, outcome?: ToolOutcome) => {
    const durationMs = performance.now() - startedAt;
    const record: ToolCallRecord = { ...start, content, isError, outcome, durationMs };
    onEvent({ type: 'tool_end', call: record });
    return record;
  };
  if (tool === undefined) return end(failureContent(`Unknown tool: ${call.name}`), true);
  let outcome: ToolOutcome;
  try {
    outcome = await unlessAborted(toolbox.call(tool, call.input, { signal }), signal);
  } catch (error) {
    signal?.throwIfAborted();
    return end(failureContent(error instanceof Error ? error.message : String(error)), true);
  }
  return end(resultContent(outcome, maxResultCharacters), outcome.isError === true, outcome);
}

/** As the tools are now: those that the model was offered may be gone. */
function toolOf({ name }: ToolCall, { toolbox, allows = () => true }: LoopOptions): AgentTool | undefined {
  return toolbox.tools().find((tool) => tool.name === name && allows(tool));
}

function leaveOut(call: ToolCall, step: number, tool: AgentTool | undefined, why: string): ToolCallRecord {
  const content = failureContent(why);
  return { ...startOf(call, step, tool), content, isError: true, outcome: undefined, durationMs: 0 };
}

function startOf({ id, name, input }: ToolCall, step: number, tool: AgentTool | undefined): ToolCallStart {
  return { id, name, server: tool?.server, input, step };
}

function messageOf({ content, raw }: Turn): AgentMessage {
  return raw === undefined ? { role: 'assistant', content } : { role: 'assistant', content, raw };
}

function textOf({ content }: Turn): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function add(total: Usage, more: Usage): void {
  for (const key of Object.keys(total) as (keyof Usage)[]) total[key] += more[key];
}
