import type { AgentEvent, ChatResult } from './events.ts';
import type { AgentMessage, Model } from './model.ts';
import type { AgentTool, Toolbox } from './toolbox.ts';

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

export const DEFAULT_MAX_STEPS = 50;
export const DEFAULT_MAX_RESULT_CHARACTERS = 100_000;

/** Lets the model speak and runs the tools that it calls, until it is done. */
export async function runLoop(_options: LoopOptions): Promise<ChatResult> {
  throw new Error('to be built');
}
