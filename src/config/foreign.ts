import { isObject } from '../json.ts';
import type { ToolChoice } from './tool-patterns.ts';

type Json = Record<string, unknown>;

/** A program whose files use a different format for servers. */
export type Program = 'claude-code' | 'codex' | 'zed' | 'opencode' | 'gemini' | 'cline';

const programNames: Record<Program, string> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  zed: 'Zed',
  opencode: 'OpenCode',
  gemini: 'Gemini CLI',
  cline: 'Cline',
};

/** Servers of another program, converted to our format as far as possible. */
export interface ForeignServers {
  program: Program;
  entries: Json;
  notes: string[];
}

/** Programs whose `timeout` is in seconds; the others use milliseconds. */
const secondsIn: Partial<Record<Program, boolean>> = { zed: true, cline: true };
/** A `timeout` up to this value is taken as seconds if the program is unknown. */
const SECONDS_UP_TO = 3_600;

/** Undefined if the file has the usual format. `folder` selects a project if the file has several. */
export function foreignServers(document: Json, file: string, folder: string): ForeignServers | undefined {
  if (isObject(document.mcp_servers)) return each('codex', document.mcp_servers, fromCodex);
  if (isObject(document.context_servers)) return zedServers(document.context_servers);
  const openCode = openCodeServers(document);
  if (openCode !== undefined) return each('opencode', openCode, fromOpenCode);
  if (isObject(document.projects) && document.servers === undefined) return fromClaudeCode(document, folder);
  const { mcpServers } = document;
  if (!isObject(mcpServers)) return undefined;
  if (/[\\/]\.gemini[\\/]/.test(file) || Object.values(mcpServers).some(isOfGemini)) {
    return each('gemini', mcpServers, fromGemini);
  }
  return isFileOfCline(file) || Object.values(mcpServers).some(isOfCline)
    ? { program: 'cline', entries: mcpServers, notes: [] }
    : undefined;
}

/** The program that the file belongs to, if only an import can read its format. */
export function ownerOf(text: string, document: unknown, file: string): string | undefined {
  if (isToml(text, file)) return hasCodexServers(text) ? programNames.codex : undefined;
  const found = isObject(document) ? foreignServers(document, file, '') : undefined;
  return found === undefined ? undefined : programNames[found.program];
}

export function isToml(text: string, file: string): boolean {
  return file.toLowerCase().endsWith('.toml') || hasCodexServers(text);
}

function hasCodexServers(text: string): boolean {
  return /^[ \t]*\[mcp_servers[.\]]/m.test(text);
}

/** Converts another program's `timeout` to milliseconds; undefined if it is not a valid one. */
export function timeoutOf(value: unknown, program: Program | undefined): number | undefined {
  if (program === 'opencode' && isObject(value)) return timeoutOf(value.request, program);
  if (typeof value !== 'number' || !(value > 0)) return undefined;
  const isSeconds = program === undefined ? value <= SECONDS_UP_TO : secondsIn[program] === true;
  return Math.round(isSeconds ? value * 1_000 : value);
}

/** The keys of other programs that select the tools of a server. */
export const toolKeys: ReadonlySet<string> = new Set([
  'includeTools',
  'excludeTools',
  'disabledTools',
  'enabled_tools',
  'disabled_tools',
]);

export function toolChoiceOf({
  includeTools,
  excludeTools,
  disabledTools,
  enabled_tools,
  disabled_tools,
}: Json): ToolChoice | undefined {
  const allow = names(includeTools ?? enabled_tools);
  const deny = names(excludeTools ?? disabledTools ?? disabled_tools);
  const hasDenied = deny !== undefined && deny.length > 0;
  if (allow === undefined && !hasDenied) return undefined;
  return { ...(allow === undefined ? {} : { allow }), ...(hasDenied ? { deny } : {}) };
}

/** Gemini writes names with their parameters: `read_file(path)`. */
function names(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.filter((name) => typeof name === 'string').map((name) => name.split('(', 1)[0]!);
}

function each(program: Program, servers: Json, convert: (server: Json) => unknown): ForeignServers {
  const entries = Object.entries(servers).map(([name, server]) => [
    name,
    isObject(server) ? convert(server) : server,
  ]);
  return { program, entries: Object.fromEntries(entries), notes: [] };
}

/** ~/.claude.json has servers for all projects, and servers of each project by its folder. */
function fromClaudeCode(document: Json, folder: string): ForeignServers {
  const projects = Object.entries(document.projects as Json).flatMap(([path, project]) =>
    isObject(project) && isObject(project.mcpServers) && Object.keys(project.mcpServers).length > 0
      ? [{ path, servers: project.mcpServers }]
      : [],
  );
  const isAbove = (path: string) => folder === path || folder.startsWith(`${path.replace(/\/$/, '')}/`);
  const [chosen] = projects
    .filter(({ path }) => isAbove(path))
    .toSorted((one, other) => other.path.length - one.path.length);
  const notes = projects
    .filter((project) => project !== chosen)
    .map(
      ({ path, servers }) =>
        `left out: the servers of the project ${path} (${Object.keys(servers).join(', ')}): import them with --folder ${path}`,
    );
  const shared = isObject(document.mcpServers) ? document.mcpServers : {};
  return { program: 'claude-code', entries: { ...shared, ...chosen?.servers }, notes };
}

/** Codex resolves the variables that it names when it connects; references do the same here. */
function fromCodex(server: Json): Json {
  const { bearer_token_env_var, http_headers, env_http_headers, env_vars, tool_timeout_sec, ...own } = server;
  const headers = {
    ...(isObject(http_headers) ? http_headers : {}),
    ...references(env_http_headers),
    ...(typeof bearer_token_env_var === 'string'
      ? { Authorization: `Bearer \${${bearer_token_env_var}}` }
      : {}),
  };
  const passed = Array.isArray(env_vars) ? env_vars.filter((name) => typeof name === 'string') : [];
  const env = {
    ...Object.fromEntries(passed.map((name) => [name, `\${${name}}`])),
    ...(isObject(own.env) ? own.env : {}),
  };
  return {
    ...own,
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...(typeof tool_timeout_sec === 'number' ? { timeoutMs: Math.round(tool_timeout_sec * 1_000) } : {}),
  };
}

/** Only Zed knows what its extensions run. */
function zedServers(all: Json): ForeignServers {
  const isExtension = (server: unknown) =>
    isObject(server) && server.command === undefined && server.url === undefined;
  const entries = Object.entries(all);
  const servers = Object.fromEntries(entries.filter(([, server]) => !isExtension(server)));
  const notes = entries
    .filter(([, server]) => isExtension(server))
    .map(([name]) => `left out: ${name}: it is an extension, which only Zed can run`);
  return { ...each('zed', servers, fromZed), notes };
}

/** Older settings have the command in an object: `{"path": …, "args": […], "env": {…}}`. */
function fromZed({ source: _source, settings: _settings, remote: _remote, ...server }: Json): Json {
  const { command } = server;
  if (!isObject(command)) return server;
  const { path, args, env } = command;
  return {
    ...server,
    command: path,
    ...(args === undefined ? {} : { args }),
    ...(env == null ? {} : { env }),
  };
}

/** Older files have the servers directly in `mcp`, newer ones in `mcp.servers`. */
function openCodeServers({ mcp }: Json): Json | undefined {
  if (!isObject(mcp)) return undefined;
  const servers = isObject(mcp.servers) && mcp.servers.type === undefined ? mcp.servers : mcp;
  const isOurs = (server: unknown) =>
    isObject(server) && (server.type === 'local' || server.type === 'remote');
  return Object.values(servers).some(isOurs) ? servers : undefined;
}

function fromOpenCode({ type, command, environment, ...server }: Json): Json {
  const [program, ...args] = Array.isArray(command) ? command : [command];
  const local = { command: program, ...(args.length === 0 ? {} : { args }) };
  const converted = {
    ...server,
    ...(type === 'remote' || command === undefined ? {} : local),
    ...(environment === undefined ? {} : { env: environment }),
  };
  return inTexts(converted, (text) => text.replace(/\{env:([A-Za-z_]\w*)\}/g, `\${$1}`));
}

function isOfGemini(server: unknown): boolean {
  return (
    isObject(server) && ['httpUrl', 'trust', 'includeTools', 'excludeTools'].some((key) => key in server)
  );
}

/** In Gemini's files, `url` is an HTTP+SSE address unless `type` says otherwise. */
function fromGemini({ httpUrl, ...server }: Json): Json {
  const converted =
    httpUrl === undefined
      ? { ...server, ...(server.url === undefined ? {} : { type: server.type ?? 'sse' }) }
      : { ...server, type: 'http', url: httpUrl };
  return inTexts(converted, (text) => text.replace(/\$([A-Za-z_]\w*)/g, `\${$1}`));
}

/** Cline and its forks, which all use seconds. */
function isFileOfCline(file: string): boolean {
  const steps = file.toLowerCase().split(/[\\/]/);
  return (
    ['cline_mcp_settings.json', 'mcp_settings.json'].includes(steps.at(-1)!) ||
    steps.slice(0, -1).some((step) => clineFolders.has(step))
  );
}

const clineFolders = new Set(['.cline', '.roo', 'saoudrizwan.claude-dev', 'rooveterinaryinc.roo-cline']);

function isOfCline(server: unknown): boolean {
  return (
    isObject(server) && ['autoApprove', 'alwaysAllow'].some((key) => key in server) && timeoutIsShort(server)
  );
}

/** Other programs with these keys use milliseconds. */
function timeoutIsShort({ timeout }: Json): boolean {
  return typeof timeout !== 'number' || timeout <= SECONDS_UP_TO;
}

/** Turns variable names into references. */
function references(value: unknown): Record<string, string> {
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, name]) => [key, `\${${String(name)}}`]))
    : {};
}

/** Replaces all strings in a value, except keys. */
function inTexts<Value>(value: Value, replace: (text: string) => string): Value {
  if (typeof value === 'string') return replace(value) as Value;
  if (Array.isArray(value)) return value.map((item) => inTexts(item, replace)) as Value;
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, inTexts(item, replace)]);
  return Object.fromEntries(entries) as Value;
}
