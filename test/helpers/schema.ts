import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Cli, RawExpressionNode } from 'kysely-codegen';

const biomeProgram = join(import.meta.dirname, '../../node_modules/.bin/biome');

const role = "'viewer' | 'caller' | 'operator' | 'owner' | 'admin'";

/** The columns hold narrower types than the database knows. */
const narrower = Object.entries({
  'kb.projects.names': "Generated<'model-safe' | 'as-is'>",
  'kb.project_mcp_servers.config': 'Record<string, unknown>',
  'kb.project_mcp_servers.settings': 'Generated<Record<string, unknown>>',
  'kb.products.manifest': 'Record<string, unknown>',
  'kb.agent_workspaces.container_type': "Generated<'mcp_server'>",
  'kb.agent_workspaces.lifecycle': "Generated<'persistent'>",
  'kb.agent_workspaces.provider': "'gvisor' | 'firecracker' | 'e2b' | 'docker' | 'process'",
  'kb.agent_workspaces.status':
    "'starting' | 'ready' | 'unresponsive' | 'restarting' | 'backing_off' | 'waiting' | 'stopped' | 'failed'",
  'kb.agent_workspaces.resource_limits': 'Generated<Record<string, unknown>>',
  'kb.agent_workspaces.mcp_config': 'Generated<Record<string, unknown>>',
  'kb.agent_workspaces.metadata': 'Generated<Record<string, unknown>>',
  'kb.agent_runs.status': "'running' | 'completed' | 'failed' | 'cancelled'",
  'kb.agent_run_messages.role': "'user' | 'assistant'",
  'kb.agent_run_tool_calls.status': "'ok' | 'tool_error' | 'error' | 'timeout' | 'cancelled'",
  'kb.principals.kind': "'key' | 'person'",
  'kb.grants.role': role,
  'kb.rules.effect': "'allow' | 'deny'",
  'kb.rules.subject_kind': "'everyone' | 'role' | 'group' | 'principal'",
  'kb.rules.subject_role': role,
  'kb.rules.item_kind': "'tool' | 'prompt' | 'resource'",
  'kb.audit_log.actor_kind': "'local' | 'key' | 'person' | 'system'",
  'kb.audit_log.outcome': "'done' | 'denied' | 'refused'",
}).map(([column, type]) => [column, new RawExpressionNode(type)] as const);

/** In the format of src/store/schema.ts. */
export async function generateSchema(url: string): Promise<string> {
  const code = await new Cli().generate({
    url,
    dialect: 'postgres',
    defaultSchemas: ['kb'],
    includePattern: 'kb.*',
    typeMapping: { int8: 'number' },
    overrides: { columns: Object.fromEntries(narrower) },
    logLevel: 'silent',
    outFile: null,
  });
  return format(code.replaceAll(/^export (?!interface DB )/gm, ''));
}

async function format(code: string): Promise<string> {
  const biome = spawn(biomeProgram, ['format', '--stdin-file-path=src/store/schema.ts'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  biome.stdin.end(code);
  return text(biome.stdout);
}
