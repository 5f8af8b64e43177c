import { readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { connectHttp, connectStdio, textOf } from '../helpers/clients.ts';
import { findPart } from '../helpers/parts.ts';
import { type ClientScene, installedIn, runNode, runProgram, type Shown } from './client-scene.ts';
import { useClaudeCode, useCodex, useGemini } from './coding-agents.ts';
import { offline, pythonVersion } from './servers.ts';

const root = join(import.meta.dirname, '../..');

type Part = 'python-sdk-1' | 'python-sdk-2' | 'go-client';

export interface RealClient {
  name: string;
  version: string;
  /** What it does, for docs/compatibility.md. */
  shown: string;
  /** What it needs besides npm packages. */
  part?: Part;
  use: (scene: ClientScene) => Promise<Shown>;
}

const agent = 'an agent lists and calls, with a scripted model';
const listsAndCalls = 'lists and calls';

export const clients: RealClient[] = [
  npm(
    'Claude Code',
    '@anthropic-ai/claude-code',
    `\`claude mcp add\`, \`claude mcp list\`; ${agent}`,
    useClaudeCode,
  ),
  npm('Codex', '@openai/codex', `\`codex exec\`: ${agent}`, useCodex),
  npm('Gemini CLI', '@google/gemini-cli', `\`gemini mcp list\`; ${agent}`, useGemini),
  npm('mcporter', 'mcporter', '`mcporter list`, `mcporter call`', useMcporter),
  npm(
    'MCP Inspector',
    '@modelcontextprotocol/inspector',
    'its command line lists and calls',
    useInspector,
    'test/peers',
  ),
  npm('mcp-remote', 'mcp-remote', 'lists and calls for a client over stdio', useMcpRemote, 'test/peers'),
  installed('TypeScript SDK v1', '@modelcontextprotocol/sdk', useSdk1),
  installed('TypeScript SDK v2', '@modelcontextprotocol/client', useSdk2),
  python('Python SDK v1', 'mcp', 1, 'sdk-1'),
  python('Python SDK v2', 'mcp', 2, 'sdk-2'),
  python('FastMCP', 'fastmcp', 2, 'fastmcp'),
  python('LangChain (Python)', 'langchain-mcp-adapters', 1, 'langchain'),
  python('Pydantic AI', 'pydantic-ai-slim', 2, 'pydantic-ai'),
  python('OpenAI Agents (Python)', 'openai-agents', 2, 'openai-agents'),
  framework('Vercel AI SDK', '@ai-sdk/mcp', 'ai-sdk', 'Vercel AI SDK'),
  framework('LangChain.js', '@langchain/mcp-adapters', 'langchain', 'LangChain.js'),
  framework('OpenAI Agents (JavaScript)', '@openai/agents', 'openai-agents', 'OpenAI Agents'),
  framework('Mastra', '@mastra/mcp', 'mastra', 'Mastra'),
  { name: 'Go SDK', version: goVersion(), shown: listsAndCalls, part: 'go-client', use: useGo },
];

async function useMcporter({ url, folder, tool, input }: ClientScene): Promise<Shown> {
  const program = installedIn('mcporter/dist/cli.js');
  const where = ['--http-url', url, '--allow-http', '--name', 'switchboard'];
  const options = { cwd: folder, env: { ...offline, HOME: folder } };
  const listed = await runNode(program, ['list', ...where, '--json'], options);
  const text = await runNode(
    program,
    ['call', ...where, '--tool', tool, '--args', JSON.stringify(input)],
    options,
  );
  return { tools: (JSON.parse(listed) as { tools: unknown[] }).tools.length, text };
}

async function useInspector({ url, folder, tool, input }: ClientScene): Promise<Shown> {
  const program = join(
    root,
    'test/peers/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
  );
  const inspect = (...words: string[]) =>
    runNode(program, ['--cli', url, '--transport', 'http', '--quiet', '--format', 'json', ...words], {
      env: { ...offline, HOME: folder },
    });
  const listed = await inspect('--method', 'tools/list');
  const args = Object.entries(input).map(([key, value]) => `${key}=${value}`);
  const text = await inspect('--method', 'tools/call', '--tool-name', tool, '--tool-arg', ...args);
  return { tools: (JSON.parse(listed) as { result: { tools: unknown[] } }).result.tools.length, text };
}

async function useMcpRemote({ url, folder, ...call }: ClientScene): Promise<Shown> {
  await using connected = await connectStdio({
    command: process.execPath,
    args: [join(root, 'test/peers/node_modules/mcp-remote/dist/proxy.js'), url, '--allow-http'],
    env: { ...offline, HOME: folder, MCP_REMOTE_CONFIG_DIR: folder },
  });
  return await useConnected(connected.client, call);
}

async function useSdk1({ url, ...call }: ClientScene): Promise<Shown> {
  await using connected = await connectHttp(url);
  return await useConnected(connected.client, call);
}

async function useSdk2({ url, ...call }: ClientScene): Promise<Shown> {
  const client = new Client({ name: 'sdk-2', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    return await useConnected(client, call);
  } finally {
    await client.close();
  }
}

type CallResult = Parameters<typeof textOf>[0];
type Connected = Awaited<ReturnType<typeof connectHttp>>['client'] | Client;

async function useConnected(
  client: Connected,
  { tool, input }: Pick<ClientScene, 'tool' | 'input'>,
): Promise<Shown> {
  const { tools } = await client.listTools();
  const { content } = await client.callTool({ name: tool, arguments: input });
  return { tools: tools.length, text: textOf({ content } as CallResult) };
}

async function useGo({ url, tool, input }: ClientScene): Promise<Shown> {
  return JSON.parse(await runProgram(commandOf('go-client'), [url, tool, JSON.stringify(input)]));
}

function python(name: string, packageName: string, sdk: 1 | 2, library: string): RealClient {
  const part = `python-sdk-${sdk}` as const;
  const program = join(import.meta.dirname, 'python/client.py');
  return {
    ...{ name, part, version: `${packageName} ${pythonVersion(sdk, packageName)}` },
    shown: library === 'pydantic-ai' ? agent : listsAndCalls,
    use: async ({ url, folder, tool, input }) =>
      JSON.parse(
        await runProgram(commandOf(part), [program, library, url, tool, JSON.stringify(input)], {
          env: { ...offline, HOME: folder, OPENAI_AGENTS_DISABLE_TRACING: '1', PYTHONDONTWRITEBYTECODE: '1' },
        }),
      ),
  };
}

/** Runs the code under that heading of docs/agents.md. */
function framework(name: string, packageName: string, which: string, heading: string): RealClient {
  const shown = `${agent}; code from [agents](agents.md#other-frameworks)`;
  return npm(name, packageName, shown, async ({ url, folder, tool, input }) => {
    const blocks = join(import.meta.dirname, 'clients/.cache');
    await mkdir(blocks, { recursive: true });
    const block = join(blocks, `${which}.ts`);
    await writeFile(block, (await codeUnder(heading)).replace('http://127.0.0.1:7400/mcp/research', url));
    const program = join(import.meta.dirname, 'clients/ask.mjs');
    const env = { ...offline, HOME: folder, MASTRA_TELEMETRY_DISABLED: '1', LANGSMITH_TRACING: 'false' };
    const said = await runNode(program, [which, block, tool, JSON.stringify(input)], { env });
    return JSON.parse(said.trim().split('\n').at(-1)!);
  });
}

/** The code block under a heading of docs/agents.md. */
export async function codeUnder(heading: string): Promise<string> {
  const page = await readFile(join(root, 'docs/agents.md'), 'utf8');
  const code = page.split(`\n### ${heading}\n`)[1]?.match(/```ts\n([\s\S]*?)```/)?.[1];
  if (code === undefined) throw new Error(`docs/agents.md has no code under ${heading}`);
  return code;
}

function npm(
  name: string,
  packageName: string,
  shown: string,
  use: RealClient['use'],
  folder = 'test/real/clients',
): RealClient {
  const { dependencies } = readJson(join(folder, 'package.json'));
  return { name, version: `${packageName} ${dependencies?.[packageName]}`, shown, use };
}

function installed(name: string, packageName: string, use: RealClient['use']): RealClient {
  const { version } = readJson(join('node_modules', packageName, 'package.json'));
  return { name, version: `${packageName} ${version}`, shown: listsAndCalls, use };
}

function readJson(path: string): { version?: string; dependencies?: Record<string, string> } {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

function goVersion(): string {
  const file = readFileSync(join(import.meta.dirname, 'go/go.mod'), 'utf8');
  return file.match(/^require (\S+ v\S+)/m)![1]!;
}

function commandOf(part: Part): string {
  const found = findPart(part);
  if ('missing' in found) throw new Error(found.missing);
  return found.command;
}
