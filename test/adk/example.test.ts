import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../helpers/cli.ts';
import { setUp } from '../helpers/set-up.ts';
import { referenceServer, startSwitchboard } from '../helpers/switchboard.ts';

const example = join(import.meta.dirname, '../../examples/adk/agent.ts');

let folder: string;

setUp(async (use) => {
  folder = use(await temporaryFolder()).path;
});

describe.concurrent('examples/adk', () => {
  it('reads a note with one server and remembers it with the other [P8]', async () => {
    const memory = join(folder, 'memory.jsonl');
    const said = await runExample([], { MEMORY_FILE_PATH: memory });
    await expectRemembered(said, memory);
  });

  it('does the same with a project of a running Switchboard [P8]', async () => {
    const memory = join(folder, 'memory-of-project.jsonl');
    const notes = join(import.meta.dirname, '../../examples/adk/notes');
    await using switchboard = await startSwitchboard({
      files: referenceServer('filesystem', notes),
      memory: { ...referenceServer('memory'), env: { MEMORY_FILE_PATH: memory } },
    });
    const said = await runExample([`${switchboard.baseUrl}/mcp/default`], {});
    await expectRemembered(said, memory);
  });
});

async function expectRemembered(said: string, memory: string): Promise<void> {
  expect(said).toContain('→ read_text_file');
  expect(said).toContain('← {"content":[{"type":"text","text":"Ada Lovelace published the first program');
  expect(said).toContain('I have read the note');
  expect(JSON.parse(await readFile(memory, 'utf8'))).toMatchObject({ name: 'Ada Lovelace' });
}

/** Returns the output. The example must exit without help, so it leaves nothing open. */
async function runExample(args: string[], env: Record<string, string>): Promise<string> {
  const words = ['--conditions=switchboard-source', example, ...args];
  const { GEMINI_API_KEY: _, ...ours } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, words, {
    env: { ...ours, SWITCHBOARD_HOME: folder, ...env },
  });
  return stdout;
}
