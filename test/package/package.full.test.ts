import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { setUp } from '../helpers/set-up.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const run = promisify(execFile);

describe('the packed tarball, installed into an empty folder', () => {
  let folder: string;
  // The installed command starts with `env node`, which must be the Node that runs the tests.
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };

  setUp(async (use) => {
    folder = use(await temporaryFolder()).path;
    await run('npm', ['pack', '--pack-destination', folder], { cwd: root, env });
    const [tarball] = await readdir(folder);
    await writeFile(join(folder, 'package.json'), '{"private": true}\n');
    await run('npm', ['install', `./${tarball}`, '--no-audit', '--no-fund', '--prefer-offline'], {
      cwd: folder,
      env,
    });
  });

  /** Writes a user's program and type-checks it. */
  const checkedProgram = async (name: string, source: string): Promise<string> => {
    const program = join(folder, `${name}.mts`);
    await writeFile(program, source);
    const compilerOptions = {
      ...{
        module: 'nodenext',
        target: 'esnext',
        strict: true,
        noEmit: true,
        exactOptionalPropertyTypes: true,
      },
      ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
    };
    const settings = join(folder, `tsconfig.${name}.json`);
    await writeFile(settings, JSON.stringify({ compilerOptions, files: [program] }));
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const checked = await run(process.execPath, [compiler, '-p', settings], { cwd: folder, env }).catch(
      (error) => error,
    );
    // The types of the ADK refer to packages that few users have. Ours must not.
    const others = relative(folder, join(root, 'node_modules'));
    const complaints = (checked.stdout as string)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith(' ') && !line.startsWith(others));
    expect(complaints).toEqual([]);
    return program;
  };

  it('has the program, its documents and nothing else', async () => {
    const installed = await readdir(join(folder, 'node_modules/switchboard'));
    expect(installed.toSorted()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'dist', 'package.json'].toSorted(),
    );
    const compiled = await readdir(join(folder, 'node_modules/switchboard/dist'), { recursive: true });
    expect(compiled.filter((file) => file.includes('.test.'))).toEqual([]);
  });

  it('installs the command `switchboard`', async () => {
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    const { stdout } = await run('npx', ['--no-install', 'switchboard', '--version'], { cwd: folder, env });
    expect(stdout.trim()).toBe(manifest.version);
  });

  it('provides agents to programs, with types, and without unused packages', async () => {
    const program = await checkedProgram('agent', usersProgram);
    const home = { SWITCHBOARD_HOME: join(folder, 'home') };
    const { stdout } = await run(process.execPath, [program, everything, 'stdio'], {
      env: { ...env, ...home },
    });
    const [echoed, refused] = stdout.split('\n');
    expect(echoed).toBe('Echo: from the library');
    expect(refused).toMatch(
      /^invalid_config Claude requires the package @anthropic-ai\/sdk, which is not installed/,
    );
  });

  it('provides tools to ADK agents, with types', async () => {
    // The ADK that is installed here stands in for the user's.
    await mkdir(join(folder, 'node_modules/@google'), { recursive: true });
    await symlink(join(root, 'node_modules/@google/adk'), join(folder, 'node_modules/@google/adk'));
    const program = await checkedProgram('adk', adkProgram);
    const { stdout } = await run(process.execPath, [program, everything, 'stdio'], {
      env: { ...env, SWITCHBOARD_HOME: join(folder, 'home') },
    });
    expect(stdout).toBe('echo get-sum\n');
  });

  it('serves a call to a configured server over HTTP', async () => {
    const config = join(folder, 'mcp.json');
    await writeFile(
      config,
      JSON.stringify({
        mcpServers: { everything: { command: process.execPath, args: [everything, 'stdio'] } },
      }),
    );
    const program = spawn(
      join(folder, 'node_modules/.bin/switchboard'),
      ['up', '--config', config, '--port', '0', '--json'],
      { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const exit = once(program, 'exit');
    const client = new Client({ name: 'package-test', version: '1.0.0' });
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(await endpointOf(program))));
      const result = await client.callTool({ name: 'echo', arguments: { message: 'through the package' } });
      expect(result.content).toEqual([{ type: 'text', text: 'Echo: through the package' }]);
    } finally {
      await client.close();
      program.kill('SIGTERM');
    }
    expect(await exit).toEqual([0, null]);
  });
});

/** A user's program with a custom model. */
const usersProgram = `
import { AiAgent, type Model, nativeTool, SwitchboardError } from 'switchboard/agent';

const model: Model = {
  name: 'scripted',
  async turn({ messages, tools }) {
    const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const last = messages.at(-1)?.content[0];
    if (last?.type === 'tool_result') {
      const [first] = last.content;
      const text = first?.type === 'text' ? first.text : '';
      return { content: [{ type: 'text', text }], stopReason: 'end', usage };
    }
    if (!tools.some(({ name }) => name === 'echo')) throw new Error('echo is missing');
    const input = { message: 'from the library' };
    return { content: [{ type: 'tool_call', id: '1', name: 'echo', input }], stopReason: 'tools', usage };
  },
};
const shout = nativeTool({
  name: 'shout',
  input: { type: 'object' },
  run: ({ text }, { signal }: { signal: AbortSignal | undefined }) => String(text) + signal?.aborted,
});
const servers = { everything: { command: process.execPath, args: process.argv.slice(2) } };
{
  await using agent = new AiAgent({ servers, nativeTools: [shout], model });
  const { text } = await agent.chat('hello', { onEvent: (event) => event.type });
  console.log(text);
}
const claude = new AiAgent({ model: 'claude-of-nobody', apiKey: 'none' });
try {
  await claude.chat('hello');
} catch (error) {
  if (error instanceof SwitchboardError) console.log(error.code, error.message);
}
`;

/** A user's program with the ADK. */
const adkProgram = `
import { type BaseToolset, LlmAgent } from '@google/adk';
import { adkTools } from 'switchboard/adk';

const servers = { everything: { command: process.execPath, args: process.argv.slice(2) } };
await using tools = adkTools({ servers, filter: ['echo', '*-sum'] });
const agent = new LlmAgent({ name: 'helper', model: 'gemini-2.5-flash', tools: [tools satisfies BaseToolset] });
console.log((await agent.canonicalTools()).map(({ name }) => name).join(' '));
`;

/** The URL that the program reports. */
async function endpointOf(program: ChildProcess & { stdout: NodeJS.ReadableStream }): Promise<string> {
  for await (const line of createInterface({ input: program.stdout })) {
    const report: { event: string; url: string } = JSON.parse(line);
    if (report.event !== 'listening') continue;
    // Later output is ignored, but a full pipe would block the program.
    program.stdout.resume();
    return report.url;
  }
  throw new Error('the program ended before it listened');
}
