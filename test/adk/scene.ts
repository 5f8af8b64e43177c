import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InMemoryRunner, LlmAgent, type LlmRequest } from '@google/adk';
import { ScriptedModel, type ScriptedTurn } from '../../examples/adk/scripted-model.ts';
import { type AdkToolsOptions, adkTools, type SwitchboardToolset } from '../../src/adk.ts';

type Response = Record<string, unknown>;

/** Sets a home folder for the process records of a test file's toolsets. */
export async function openHome(): Promise<() => Promise<void>> {
  const home = await mkdtemp(join(tmpdir(), 'switchboard-adk-'));
  process.env.SWITCHBOARD_HOME = home;
  return async () => {
    delete process.env.SWITCHBOARD_HOME;
    await rm(home, { recursive: true, force: true });
  };
}

export function toolset(options: AdkToolsOptions): SwitchboardToolset {
  return adkTools({
    onWarning: (message) => {
      throw new Error(`unexpected warning: ${message}`);
    },
    ...options,
  });
}

export interface Run {
  /** The tool responses, in the order of the calls. */
  responses: Response[];
  /** The requests to the model, one per turn. */
  requests: LlmRequest[];
  text: string;
}

/** Runs an agent with these tools and a scripted model. */
export async function runAgent(
  tools: SwitchboardToolset,
  turns: ScriptedTurn[],
  abortSignal?: AbortSignal,
): Promise<Run> {
  const model = new ScriptedModel(...turns);
  const runner = new InMemoryRunner({ agent: new LlmAgent({ name: 'tester', model, tools: [tools] }) });
  const { id: sessionId } = await runner.sessionService.createSession({
    appName: runner.appName,
    userId: 'tester',
  });
  const responses: Response[] = [];
  let text = '';
  const newMessage = { role: 'user', parts: [{ text: 'Begin.' }] };
  const options = abortSignal === undefined ? {} : { abortSignal };
  for await (const event of runner.runAsync({ userId: 'tester', sessionId, newMessage, ...options })) {
    for (const part of event.content?.parts ?? []) {
      if (part.functionResponse?.response !== undefined) responses.push(part.functionResponse.response);
      text += part.text ?? '';
    }
  }
  return { responses, requests: model.requests, text };
}

export function calls(name: string, args: Record<string, unknown> = {}): ScriptedTurn {
  return [{ name, args }];
}

/** The text of a tool response. */
export function textIn(response: Response | undefined): string {
  const [first] = (response?.content ?? []) as { text?: string }[];
  if (first?.text === undefined) throw new Error(`no text in ${JSON.stringify(response)}`);
  return first.text;
}

export function offeredIn({ config }: LlmRequest): string[] {
  return (config?.tools ?? []).flatMap((tool) =>
    'functionDeclarations' in tool ? (tool.functionDeclarations ?? []).map(({ name }) => name ?? '') : [],
  );
}
