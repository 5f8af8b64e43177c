/**
 * An agent of the ADK with the tools of two MCP servers: it reads a file and stores its content.
 *
 *     node examples/adk/agent.ts [the URL of a project of a running Switchboard]
 *
 * With GEMINI_API_KEY it uses Gemini, otherwise a scripted model.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Event, InMemoryRunner, LlmAgent } from '@google/adk';
import { adkTools } from 'switchboard/adk';
import { ScriptedModel } from './scripted-model.ts';

const folder = join(import.meta.dirname, 'notes');
const [url] = process.argv.slice(2);
const { GEMINI_API_KEY, MEMORY_FILE_PATH = join(tmpdir(), 'switchboard-adk-memory.jsonl') } = process.env;

await using tools = adkTools(
  url === undefined
    ? {
        servers: {
          files: { command: process.execPath, args: [programOf('filesystem'), folder] },
          memory: { command: process.execPath, args: [programOf('memory')], env: { MEMORY_FILE_PATH } },
        },
        filter: ['read_text_file', 'create_entities', 'read_graph'],
      }
    : { url },
);

const scripted = new ScriptedModel(
  [{ name: 'read_text_file', args: { path: join(folder, 'ada.txt') } }],
  [
    {
      name: 'create_entities',
      args: {
        entities: [
          {
            name: 'Ada Lovelace',
            entityType: 'person',
            observations: ['published the first program in 1843'],
          },
        ],
      },
    },
  ],
  'I have read the note and will remember that Ada Lovelace published the first program in 1843.',
);

const agent = new LlmAgent({
  name: 'librarian',
  model: GEMINI_API_KEY === undefined ? scripted : 'gemini-2.5-flash',
  instruction: `You keep notes on people. The notes are in ${folder}; what you learn goes into your memory.`,
  tools: [tools],
});

const newMessage = { role: 'user', parts: [{ text: 'Read ada.txt and remember who it is about.' }] };
for await (const event of new InMemoryRunner({ agent }).runEphemeral({ userId: 'reader', newMessage })) {
  print(event);
}

/** A server that is installed in this clone. Elsewhere, use `command: 'npx', args: ['-y', '@modelcontextprotocol/server-memory']`. */
function programOf(server: string): string {
  return fileURLToPath(import.meta.resolve(`@modelcontextprotocol/server-${server}/dist/index.js`));
}

function print({ content }: Event): void {
  for (const { text, functionCall, functionResponse } of content?.parts ?? []) {
    if (text !== undefined) console.log(text);
    if (functionCall !== undefined)
      console.log(`→ ${functionCall.name} ${JSON.stringify(functionCall.args)}`);
    if (functionResponse !== undefined) console.log(`← ${JSON.stringify(functionResponse.response)}`);
  }
}
