import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findPart } from '../helpers/parts.ts';
import { referenceServer } from '../helpers/switchboard.ts';

const root = join(import.meta.dirname, '../..');

export interface Place {
  /** A writable folder with a Git repository that has one commit. */
  folder: string;
  /** A local web page with the text `hello from this machine`. */
  page: string;
  /** The addresses of the reference server `everything` over the two HTTP transports. */
  http: string;
  sse: string;
}

export interface RealServer {
  name: string;
  package: string;
  version: string;
  from: 'npm' | 'PyPI';
  transport: 'stdio' | 'streamable HTTP' | 'HTTP+SSE';
  /** What it needs besides npm packages. */
  part?: 'python-sdk-1' | 'python-sdk-2';
  /** Its entry in a configuration file, or why it cannot run here. */
  config: (place: Place) => object | { missing: string };
  tool: string;
  arguments: (place: Place) => Record<string, unknown>;
  /** Matches its response to that call. */
  answer: RegExp;
  /** An error is expected from servers that need an account, a browser or a network. */
  kind: 'result' | 'error in a result' | 'tool error' | 'protocol error';
}

/** Keeps all requests on the machine with an unreachable proxy in every common variable. */
export const offline = {
  ...{ HTTP_PROXY: 'http://127.0.0.1:9', HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1,localhost' },
  ...{ http_proxy: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9', no_proxy: '127.0.0.1,localhost' },
  ...{ NODE_USE_ENV_PROXY: '1', DO_NOT_TRACK: '1' },
};

type Call = Pick<RealServer, 'tool' | 'answer'> & Partial<Pick<RealServer, 'arguments' | 'kind'>>;

const sum = { tool: 'get-sum', arguments: () => ({ a: 2, b: 40 }), answer: /The sum of 2 and 40 is 42/ };

export const servers: RealServer[] = [
  ...[
    reference('everything', 'everything', sum),
    {
      ...reference('everything-http', 'everything', sum),
      transport: 'streamable HTTP' as const,
      config: ({ http }: Place) => ({ url: http }),
    },
    {
      ...reference('everything-sse', 'everything', sum),
      transport: 'HTTP+SSE' as const,
      config: ({ sse }: Place) => ({ url: sse, type: 'sse' }),
    },
    {
      ...reference('filesystem', 'filesystem', {
        tool: 'read_text_file',
        arguments: ({ folder }) => ({ path: join(folder, 'hello.js') }),
        answer: /console\.log/,
      }),
      config: ({ folder }: Place) => referenceServer('filesystem', folder),
    },
    {
      ...reference('memory', 'memory', { tool: 'read_graph', answer: /"entities": \[\]/ }),
      config: ({ folder }: Place) => ({
        ...referenceServer('memory'),
        env: { MEMORY_FILE_PATH: join(folder, 'memory.json') },
      }),
    },
  ],
  npm('sequential-thinking', '@modelcontextprotocol/server-sequential-thinking', {
    tool: 'sequentialthinking',
    arguments: () => ({ thought: 'Well.', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }),
    answer: /"thoughtNumber": 1/,
  }),
  npm(
    'git-cyanheads',
    '@cyanheads/git-mcp-server',
    { tool: 'git_status', arguments: ({ folder }) => ({ path: folder }), answer: /main/ },
    { env: { MCP_TRANSPORT_TYPE: 'stdio' } },
  ),
  npm('eslint', '@eslint/mcp', {
    tool: 'lint-files',
    arguments: ({ folder }) => ({ filePaths: [join(folder, 'hello.js')] }),
    answer: /no-undef/,
  }),
  npm(
    'taskmanager',
    '@kazuph/mcp-taskmanager',
    { tool: 'list_requests', answer: /Requests List/ },
    { env: { TASK_MANAGER_FILE_PATH: '/not-there/tasks.json' } },
  ),
  npm(
    'hubspot',
    '@hubspot/mcp-server',
    { tool: 'hubspot-generate-feedback-link', answer: /http/ },
    { env: { PRIVATE_APP_ACCESS_TOKEN: 'none' } },
  ),
  npm(
    'github',
    '@modelcontextprotocol/server-github',
    { tool: 'create_issue', answer: /Invalid input/, kind: 'protocol error' },
    { env: { GITHUB_PERSONAL_ACCESS_TOKEN: 'none' } },
  ),
  npm(
    'slack',
    '@modelcontextprotocol/server-slack',
    { tool: 'slack_post_message', answer: /"error":"Missing required arguments/, kind: 'error in a result' },
    { env: { SLACK_BOT_TOKEN: 'none', SLACK_TEAM_ID: 'none' } },
  ),
  npm(
    'notion',
    '@notionhq/notion-mcp-server',
    { tool: 'API-get-self', answer: /ECONNREFUSED 127\.0\.0\.1:9/, kind: 'protocol error' },
    { env: { NOTION_TOKEN: 'none' } },
  ),
  npm(
    'perplexity',
    '@perplexity-ai/mcp-server',
    { tool: 'perplexity_ask', answer: /messages/, kind: 'tool error' },
    { env: { PERPLEXITY_API_KEY: 'none' } },
  ),
  npm(
    'brave-search',
    '@brave/brave-search-mcp-server',
    { tool: 'brave_web_search', answer: /query/, kind: 'tool error' },
    { env: { BRAVE_API_KEY: 'none' }, args: ['--transport', 'stdio'] },
  ),
  npm(
    'playwright',
    '@playwright/mcp',
    { tool: 'browser_close', answer: /not-a-browser/, kind: 'tool error' },
    { args: ['--headless', '--executable-path', '/not-a-browser'] },
  ),
  npm(
    'chrome-devtools',
    'chrome-devtools-mcp',
    { tool: 'click', answer: /uid/, kind: 'tool error' },
    { args: ['--headless', '--no-usage-statistics'] },
  ),
  npm('context7', '@upstash/context7-mcp', { tool: 'query-docs', answer: /libraryId/, kind: 'tool error' }),
  npm(
    'airtable',
    'airtable-mcp-server',
    { tool: 'list_tables', answer: /baseId/, kind: 'tool error' },
    { env: { AIRTABLE_API_KEY: 'none' } },
  ),
  npm(
    'exa',
    'exa-mcp-server',
    { tool: 'web_search_exa', answer: /query/, kind: 'tool error' },
    { env: { EXA_API_KEY: 'none' } },
  ),
  npm(
    'searxng',
    'mcp-searxng',
    {
      tool: 'searxng_web_search',
      arguments: () => ({ query: 'mcp' }),
      answer: /Network Error/,
      kind: 'tool error',
    },
    { env: { SEARXNG_URL: 'http://127.0.0.1:9' } },
  ),
  npm(
    'tavily',
    'tavily-mcp',
    {
      tool: 'tavily_search',
      arguments: () => ({ query: 'mcp' }),
      answer: /Tavily API error/,
      kind: 'tool error',
    },
    { env: { TAVILY_API_KEY: 'none' } },
  ),
  pypi('calculator', 'mcp-server-calculator', 1, {
    tool: 'calculate',
    arguments: () => ({ expression: '6 * 7' }),
    answer: /^42$/,
  }),
  pypi(
    'sqlite',
    'mcp-server-sqlite',
    1,
    { tool: 'read_query', arguments: () => ({ query: 'SELECT 6 * 7 AS answer' }), answer: /'answer': 42/ },
    ({ folder }) => ({ args: ['--db-path', join(folder, 'test.db')] }),
  ),
  pypi(
    'shell',
    'mcp-shell-server',
    1,
    {
      tool: 'shell_execute',
      arguments: ({ folder }) => ({ command: ['echo', 'hello'], directory: folder }),
      answer: /hello/,
    },
    () => ({ env: { ALLOW_COMMANDS: 'echo' } }),
  ),
  pypi('arxiv', 'arxiv-mcp-server', 1, { tool: 'list_papers', answer: /total_papers/ }, ({ folder }) => ({
    args: ['--storage-path', join(folder, 'papers')],
  })),
  pypi(
    'fetch',
    'mcp-server-fetch',
    2,
    { tool: 'fetch', arguments: ({ page }) => ({ url: page }), answer: /hello from this machine/ },
    () => ({ args: ['--allow-private-ips'] }),
  ),
  pypi('git', 'mcp-server-git', 2, {
    tool: 'git_status',
    arguments: ({ folder }) => ({ repo_path: folder }),
    answer: /On branch main/,
  }),
  pypi('time', 'mcp-server-time', 2, {
    tool: 'convert_time',
    arguments: () => ({ source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' }),
    answer: /T21:00:00\+09:00/,
  }),
  pypi(
    'excel',
    'excel-mcp-server',
    2,
    {
      tool: 'create_workbook',
      arguments: ({ folder }) => ({ path: join(folder, 'book.xlsx') }),
      answer: /book\.xlsx/,
    },
    () => ({ args: ['stdio'] }),
  ),
  pypi('duckduckgo', 'duckduckgo-mcp-server', 2, { tool: 'search', answer: /query/, kind: 'tool error' }),
  pypi('aws-documentation', 'awslabs.aws-documentation-mcp-server', 2, {
    tool: 'read_documentation',
    arguments: () => ({ url: 'https://example.com/' }),
    answer: /URL must be from list of supported domains/,
    kind: 'tool error',
  }),
  pypi('wikipedia', 'wikipedia-mcp', 2, { tool: 'get_article', answer: /title/, kind: 'tool error' }),
];

function reference(name: string, which: 'everything' | 'filesystem' | 'memory', call: Call): RealServer {
  const packageName = `@modelcontextprotocol/server-${which}`;
  return {
    ...{ name, package: packageName, version: installed(join(root, 'node_modules', packageName)).version },
    ...{ from: 'npm', transport: 'stdio', config: () => referenceServer(which) },
    ...filled(call),
  };
}

function npm(
  name: string,
  packageName: string,
  call: Call,
  more: { args?: string[]; env?: Record<string, string> } = {},
): RealServer {
  const folder = join(import.meta.dirname, 'servers/node_modules', packageName);
  const pins = JSON.parse(readFileSync(join(import.meta.dirname, 'servers/package.json'), 'utf8'));
  return {
    ...{ name, package: packageName, version: pins.dependencies[packageName] },
    ...{ from: 'npm', transport: 'stdio' },
    config: () => ({
      command: process.execPath,
      args: [join(folder, programOf(folder)), ...(more.args ?? [])],
      env: { ...offline, ...more.env },
    }),
    ...filled(call),
  };
}

function pypi(
  name: string,
  packageName: string,
  sdk: 1 | 2,
  call: Call,
  more: (place: Place) => { args?: string[]; env?: Record<string, string>; cwd?: string } = () => ({}),
): RealServer {
  return {
    ...{ name, package: packageName, version: pythonVersion(sdk, packageName) },
    ...{ from: 'PyPI', transport: 'stdio', part: `python-sdk-${sdk}` },
    config: (place) => {
      const part = findPart(`python-sdk-${sdk}`);
      if ('missing' in part) return part;
      const given = more(place);
      const command = join(dirname(part.command), packageName);
      return { ...given, command, env: { ...offline, ...given.env } };
    },
    ...filled(call),
  };
}

/** The pinned version of a Python package for this SDK. */
export function pythonVersion(sdk: 1 | 2, packageName: string): string {
  const pins = readFileSync(join(import.meta.dirname, `python/sdk-${sdk}.txt`), 'utf8');
  const line = pins.split('\n').find((pin) => pin.startsWith(`${packageName.replaceAll('.', '-')}==`));
  return line?.split(/==| ;/)[1] ?? '';
}

function filled(call: Call): Pick<RealServer, 'tool' | 'answer' | 'arguments' | 'kind'> {
  return { arguments: () => ({}), kind: 'result', ...call };
}

function programOf(folder: string): string {
  const { bin } = installed(folder);
  return typeof bin === 'string' ? bin : Object.values(bin)[0]!;
}

function installed(folder: string): { version: string; bin: string | Record<string, string> } {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}
