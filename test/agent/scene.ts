import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AiAgent, type AiAgentOptions } from '../../src/agent.ts';
import { Witness } from '../helpers/witness.ts';
import { API_KEY, type MessagesApi, type Script, startMessagesApi } from './messages-api.ts';

export interface Scene extends AsyncDisposable {
  api: MessagesApi;
  agent: AiAgent;
  witness: Witness;
  warnings: string[];
  /** The records of processes that have not ended. */
  records(): Promise<string[]>;
}

/** An agent with a stand-in for Claude's API, a witness for its servers, and its own home folder. */
export async function openScene(
  script: Script,
  optionsFor: (witness: Witness) => Omit<AiAgentOptions, 'model'> = () => ({}),
  model: AiAgentOptions['model'] = 'claude-stand-in',
): Promise<Scene> {
  const home = await mkdtemp(join(tmpdir(), 'switchboard-agent-'));
  const before = process.env.SWITCHBOARD_HOME;
  process.env.SWITCHBOARD_HOME = home;
  const witness = await Witness.open();
  const api = await startMessagesApi(script);
  const warnings: string[] = [];
  const access = typeof model === 'string' ? { apiKey: API_KEY, baseUrl: api.url } : {};
  const agent = new AiAgent({
    ...{ model, ...access },
    onWarning: (message) => warnings.push(message),
    ...optionsFor(witness),
  });
  return {
    ...{ api, agent, witness, warnings },
    records: () => readdir(join(home, 'run')).catch(() => []),
    async [Symbol.asyncDispose]() {
      await agent.stop();
      await api[Symbol.asyncDispose]();
      await witness[Symbol.asyncDispose]();
      if (before === undefined) delete process.env.SWITCHBOARD_HOME;
      else process.env.SWITCHBOARD_HOME = before;
      await rm(home, { recursive: true, force: true });
    },
  };
}
