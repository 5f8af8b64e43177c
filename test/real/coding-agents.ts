import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { API_KEY, calls, resultsIn, says, startMessagesApi } from '../agent/messages-api.ts';
import { type ClientScene, installedIn, runNode, runProgram, type Shown } from './client-scene.ts';
import { startGeminiApi, startResponsesApi } from './model-apis.ts';
import { offline } from './servers.ts';

// Command-line agents. Each uses a local stand-in for its model's API, which makes it call one tool.

export async function useClaudeCode({ url, folder, tool, input }: ClientScene): Promise<Shown> {
  const prefix = 'mcp__switchboard__';
  let offered: string[] = [];
  await using api = await startMessagesApi((request) => {
    const names = (request.body.tools ?? []).map((each) => ('name' in each ? each.name : ''));
    offered = names.filter((name) => name.startsWith(prefix));
    const [result] = resultsIn(request);
    return result === undefined
      ? calls({ name: `${prefix}${tool}`, input })
      : says(JSON.stringify(result.content));
  });
  const program = installedIn(`@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`);
  const env = {
    ...{ ...offline, HOME: folder, ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: API_KEY },
    ...{ DISABLE_TELEMETRY: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
    // Offers all tools at once, regardless of their number.
    ENABLE_TOOL_SEARCH: 'false',
  };
  const options = { cwd: folder, env };
  await runProgram(program, ['mcp', 'add', '--transport', 'http', 'switchboard', url], options);
  const health = await runProgram(program, ['mcp', 'list'], options);
  if (!/^switchboard: .*Connected$/m.test(health)) throw new Error(`claude mcp list says: ${health}`);
  const words = ['--print', 'Use the tool.', '--output-format', 'json', '--model', 'claude-sonnet-5-5'];
  const said = await runProgram(program, [...words, '--allowedTools', `${prefix}${tool}`], options);
  return { tools: offered.length, text: said };
}

export async function useCodex({ url, folder, tool, input }: ClientScene): Promise<Shown> {
  await using api = await startResponsesApi('mcp__switchboard', { tool, arguments: input });
  const settings = {
    model_provider: 'stand-in',
    'model_providers.stand-in.name': 'stand-in',
    'model_providers.stand-in.base_url': api.url,
    'model_providers.stand-in.wire_api': 'responses',
    'mcp_servers.switchboard.url': url,
    'analytics.enabled': false,
  };
  const words = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${JSON.stringify(value)}`]);
  const modes = ['--skip-git-repo-check', '--json', '--dangerously-bypass-approvals-and-sandbox'];
  const text = await runNode(
    installedIn('@openai/codex/bin/codex.js'),
    ['exec', ...modes, '--model', 'stand-in', ...words, 'Use the tool.'],
    { cwd: folder, env: { ...offline, HOME: folder, CODEX_HOME: folder } },
  );
  return { tools: api.offered.length, text };
}

export async function useGemini({ url, folder, tool, input }: ClientScene): Promise<Shown> {
  await using api = await startGeminiApi({ tool, arguments: input });
  await mkdir(join(folder, '.gemini'));
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    general: { enableAutoUpdate: false },
    mcpServers: { switchboard: { type: 'http', url } },
  };
  await writeFile(join(folder, '.gemini', 'settings.json'), JSON.stringify(settings));
  const program = installedIn('@google/gemini-cli/bundle/gemini.js');
  // Without `offline`: proxy variables would apply to its MCP servers too.
  const env = {
    ...{ HOME: folder, GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_TELEMETRY_ENABLED: 'false' },
    ...{ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: api.url },
  };
  const options = { cwd: folder, env };
  const health = await runNode(program, ['mcp', 'list'], { ...options, withErrors: true });
  if (!/switchboard: .*Connected/.test(health)) throw new Error(`gemini mcp list says: ${health}`);
  const words = ['--prompt', 'Use the tool.', '--model', 'gemini-2.5-pro', '--approval-mode', 'yolo'];
  const text = await runNode(program, [...words, '--output-format', 'json'], options);
  return { tools: api.offered.filter((name) => name.startsWith('mcp_switchboard_')).length, text };
}
