import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { referenceServer } from '../helpers/servers.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';

const example = join(import.meta.dirname, '../../examples/adk/agent.ts');

it.concurrent('examples/adk reads a note with one server and remembers it with the other [P8]', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-adk-'));
  try {
    const memory = join(folder, 'memory.jsonl');
    const said = await runExample([], { MEMORY_FILE_PATH: memory });
    expect(said).toContain('→ read_text_file');
    expect(said).toContain('← {"content":[{"type":"text","text":"Ada Lovelace published the first program');
    expect(said).toContain('I have read the note');
    expect(JSON.parse(await readFile(memory, 'utf8'))).toMatchObject({ name: 'Ada Lovelace' });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

it.concurrent('examples/adk does the same with a project of a running Switchboard [P8]', async () => {
  const notes = join(import.meta.dirname, '../../examples/adk/notes');
  await using switchboard = await startSwitchboard(
    { mcpServers: { files: referenceServer('filesystem', notes), memory: referenceServer('memory') } },
    { database: 'none' },
  );
  const said = await runExample([`${switchboard.baseUrl}/mcp/default`], {});
  expect(said).toContain('← {"content":[{"type":"text","text":"Ada Lovelace published the first program');
});

/** What it printed. It ends by itself, so nothing of it is left open. */
async function runExample(args: string[], env: Record<string, string>): Promise<string> {
  const words = ['--conditions=switchboard-source', example, ...args];
  const { GEMINI_API_KEY: _, ...ours } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: { ...ours, ...env } });
  return stdout;
}
