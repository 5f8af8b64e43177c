import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const program = fileURLToPath(
  new URL('../peers/node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);

const checkStatus = z.enum(['SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED', 'INFO']);

const savedChecks = z.array(
  z.object({
    id: z.string(),
    status: checkStatus,
    description: z.string(),
    errorMessage: z.string().optional(),
  }),
);

export interface Check {
  scenario: string;
  id: string;
  status: z.infer<typeof checkStatus>;
  /** What went wrong, or what the check is about where nothing did. */
  message: string;
}

/**
 * Runs every server scenario of a protocol revision, scored or not, against an endpoint, one after the other:
 * a server that is shared by clients in parallel may not know which one of them to ask.
 */
export async function runConformance(url: string, revision: string): Promise<Check[]> {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
  try {
    const output = await runProgram([
      'server',
      ...['--url', url],
      ...['--requirements', revision],
      ...['--output-dir', folder],
    ]);
    const scenarioFolders = await readdir(folder);
    if (scenarioFolders.length === 0) throw new Error(`No scenario was run:\n${output}`);
    const checks = await Promise.all(scenarioFolders.map((name) => readChecks(folder, name)));
    return checks.flat();
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The program's exit code says whether a scored check failed; the saved checks say that in more detail. */
function runProgram(programArguments: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [program, ...programArguments],
      { maxBuffer: Number.POSITIVE_INFINITY },
      (_error, stdout, stderr) => resolve(stdout + stderr),
    );
  });
}

async function readChecks(folder: string, scenarioFolder: string): Promise<Check[]> {
  const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(scenarioFolder)?.[1];
  if (scenario === undefined) throw new Error(`${scenarioFolder} does not name a scenario and a time`);
  const path = join(folder, scenarioFolder, 'checks.json');
  const saved = await readFile(path, 'utf8').catch(() => undefined);
  if (saved === undefined) {
    return [
      { scenario, id: scenario, status: 'FAILURE', message: 'The scenario broke off without a result' },
    ];
  }
  return savedChecks.parse(JSON.parse(saved)).map(({ id, status, description, errorMessage }) => ({
    scenario,
    id,
    status,
    message: errorMessage ?? description,
  }));
}
