import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

const bin = join(import.meta.dirname, '../../node_modules/.bin');

/** What the columns hold is narrower than what the database knows of them. */
const columns = {
  'kb.project_mcp_servers.transport': "'stdio' | 'sse' | 'http'",
  'kb.project_mcp_servers.config': 'Record<string, unknown>',
  'kb.project_mcp_servers.settings': 'Generated<Record<string, unknown>>',
  'kb.products.manifest': 'Record<string, unknown>',
  'kb.agent_run_tool_calls.status': "'ok' | 'tool_error' | 'error' | 'timeout' | 'cancelled'",
};

/** The types of a database's tables, as src/store/schema.ts has them. */
export async function generateSchema(url: string): Promise<string> {
  const { stdout } = await promisify(execFile)(join(bin, 'kysely-codegen'), [
    ...['--dialect', 'postgres', '--url', url, '--default-schema', 'kb', '--include-pattern', 'kb.*'],
    ...['--type-mapping', JSON.stringify({ int8: 'number' })],
    ...['--overrides', JSON.stringify({ columns })],
    ...['--log-level', 'silent', '--print'],
  ]);
  return format(stdout.slice(stdout.indexOf('/**')).replaceAll(/^export (?!interface DB )/gm, ''));
}

async function format(code: string): Promise<string> {
  const biome = spawn(join(bin, 'biome'), ['format', '--stdin-file-path=src/store/schema.ts'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  biome.stdin.end(code);
  return text(biome.stdout);
}
