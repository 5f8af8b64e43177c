// Runs the `ask` of a code block with a model that calls one tool and repeats the result. Prints the number of offered tools and
// the answer as JSON.
import { fakeModel } from '@langchain/core/testing';
import { setTracingDisabled, Usage } from '@openai/agents';
import { MockLanguageModelV4 } from 'ai/test';

const [framework, block, tool, input] = process.argv.slice(2);
setTracingDisabled(true);
let offered = [];

/** Finds the tool among those offered, because some frameworks rewrite names. */
function toolIn(tools) {
  const plain = (name) => name.replaceAll('-', '_');
  offered = tools.map(({ name }) => name);
  return offered.find((name) => plain(name).endsWith(plain(tool)));
}

const models = {
  'ai-sdk': testModel,
  mastra: testModel,
  langchain: () => {
    const model = fakeModel()
      .respondWithTools([{ name: tool, args: JSON.parse(input), id: 'call_1' }])
      .respond((messages) => messages.at(-1));
    const bind = model.bindTools.bind(model);
    model.bindTools = (tools) => {
      toolIn(tools);
      return bind(tools);
    };
    return model;
  },
  'openai-agents': () => ({
    async getResponse({ tools, input: items }) {
      const answered = items.find?.(({ type }) => type === 'function_call_result');
      const call = { type: 'function_call', callId: 'call_1', name: toolIn(tools), arguments: input };
      const text = JSON.stringify(answered?.output);
      const words = {
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text }],
      };
      return { usage: new Usage(), output: [answered === undefined ? call : words] };
    },
  }),
};

/** The test model of the AI SDK, which works with Mastra too. */
function testModel() {
  const answer = ({ prompt, tools = [] }) => {
    const toolName = toolIn(tools);
    const last = prompt.at(-1);
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    return last.role === 'tool'
      ? { text: JSON.stringify(last.content[0].output), finishReason: { unified: 'stop' }, usage }
      : { call: { toolCallId: 'call_1', toolName, input }, finishReason: { unified: 'tool-calls' }, usage };
  };
  return new MockLanguageModelV4({
    doGenerate: async (options) => {
      const { text, call, ...end } = answer(options);
      const part = call === undefined ? { type: 'text', text } : { type: 'tool-call', ...call };
      return { content: [part], warnings: [], ...end };
    },
    doStream: async (options) => {
      const { text, call, ...end } = answer(options);
      const parts =
        call === undefined
          ? [
              { type: 'text-start', id: '1' },
              { type: 'text-delta', id: '1', delta: text },
              { type: 'text-end', id: '1' },
            ]
          : [{ type: 'tool-call', ...call }];
      const all = [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...end }];
      return { stream: ReadableStream.from(all) };
    },
  });
}

const { ask } = await import(block);
const text = await ask(models[framework](), 'Use the tool.');
console.log(JSON.stringify({ tools: offered.length, text }));
