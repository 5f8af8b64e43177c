/**
 * Talk with Claude about your recipes: `node examples/recipes/chat.ts [folder of the recipes]`.
 * It needs ANTHROPIC_API_KEY. ANTHROPIC_BASE_URL and ANTHROPIC_MODEL select another address and model.
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { styleText } from 'node:util';
import { type AgentEvent, type AgentMessage, AiAgent } from 'switchboard/agent';
import { displayRecipe } from './display-recipe.ts';

const [folder = 'recipes'] = process.argv.slice(2);
const { ANTHROPIC_BASE_URL: baseUrl, ANTHROPIC_MODEL: model = 'claude-sonnet-5-5' } = process.env;

await using agent = new AiAgent({
  model,
  baseUrl,
  system: 'You look after the recipe book of the user. Show recipes with display_recipe.',
  servers: {
    recipes: { command: process.execPath, args: [join(import.meta.dirname, 'server.ts'), folder] },
    // Servers do not inherit our environment. This passes uv's own settings, such as a mirror.
    fetch: { command: 'uvx', args: ['mcp-server-fetch'], env: environmentOf('UV_') },
  },
  nativeTools: [displayRecipe],
});

const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: '\nyou › ' });
let talk: AbortController | undefined;
// The first Ctrl-C cancels Claude's answer, the next one ends the chat.
lines.on('SIGINT', () => (talk === undefined ? lines.close() : talk.abort()));

let isOver = false;
lines.on('close', () => {
  isOver = true;
});

let history: readonly AgentMessage[] = [];
lines.prompt();
for await (const line of lines) {
  if (line.trim() !== '') await answer(line);
  if (!isOver) lines.prompt();
}

async function answer(line: string): Promise<void> {
  talk = new AbortController();
  try {
    for await (const event of agent.chatStream(line, { history, signal: talk.signal })) {
      show(event);
      if (event.type === 'done') history = event.result.messages;
    }
  } catch (error) {
    const why = talk.signal.aborted ? 'stopped' : (error as Error).message;
    process.stdout.write(styleText('red', `\n${why}`));
  }
  talk = undefined;
  process.stdout.write('\n');
}

function show(event: AgentEvent): void {
  if (event.type === 'text') process.stdout.write(event.text);
  if (event.type === 'tool_start') {
    const { server, name, input } = event.call;
    process.stdout.write(styleText('dim', `\n→ ${server} ${name} ${JSON.stringify(input)}\n`));
  }
  if (event.type === 'tool_end' && event.call.isError) {
    const why = event.call.content.map((part) => (part.type === 'text' ? part.text : part.type)).join(' ');
    process.stdout.write(styleText('red', `← ${event.call.name} failed: ${why}\n`));
  }
}

function environmentOf(prefix: string): Record<string, string> {
  const named = Object.entries(process.env).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(named.map(([name, value]) => [name, value ?? '']));
}
