import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from '@google/adk';

/** One turn of the model: text, or tool calls. */
export type ScriptedTurn = string | { name: string; args: Record<string, unknown> }[];

/** Replays scripted turns, so that an agent can be tried without a key. It records its requests. */
export class ScriptedModel extends BaseLlm {
  readonly requests: LlmRequest[] = [];
  private readonly turns: ScriptedTurn[];

  constructor(...turns: ScriptedTurn[]) {
    super({ model: 'scripted' });
    this.turns = turns;
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    // The ADK keeps modifying the request.
    this.requests.push({ ...request, contents: [...request.contents] });
    const turn = this.turns.shift() ?? 'That is all.';
    const parts = typeof turn === 'string' ? [{ text: turn }] : turn.map((call) => ({ functionCall: call }));
    yield { content: { role: 'model', parts } };
  }

  override connect(): Promise<BaseLlmConnection> {
    throw new Error('the scripted model does not speak live');
  }
}
