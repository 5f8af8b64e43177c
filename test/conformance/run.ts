import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { patienceMs } from '../helpers/patience.ts';

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
  /** The failure, or the subject of the check if it passed. */
  message: string;
}

/** Runs all server scenarios of a revision in sequence: a shared server may not know which of several clients to ask. */
export async function runConformance(url: string, revision: string): Promise<Check[]> {
  const { checks } = await runProgram([...serverAt(url), '--requirements', revision]);
  return checks;
}

function serverAt(url: string): string[] {
  return ['server', '--url', url, '--timeout', String(patienceMs)];
}

export async function runServerScenario(url: string, revision: string, scenario: string): Promise<Check[]> {
  const { checks } = await runProgram([
    ...serverAt(url),
    ...['--scenario', scenario, '--spec-version', revision],
  ]);
  return checks;
}

/** Runs one client scenario. Its server's address is the last argument of the shell command, whose exit code is checked too. */
export async function runClientScenario(
  scenario: string,
  revision: string,
  command: string,
): Promise<Check[]> {
  const { checks, isPassed, output } = await runProgram(
    [
      'client',
      ...['--command', command],
      ...['--scenario', scenario],
      ...['--spec-version', revision],
      ...['--timeout', String(patienceMs)],
    ],
    // A scenario's server waits for its clients.
    patienceMs,
  );
  const ending = { scenario, id: 'everything-passed', status: 'FAILURE', message: output } as const;
  return isPassed ? checks : [...checks, ending];
}

interface Run {
  checks: Check[];
  /** From the exit code, which counts only the scored server scenarios. */
  isPassed: boolean;
  output: string;
}

async function runProgram(programArguments: string[], timeoutMs = 0): Promise<Run> {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
  try {
    const ended = await execute([...programArguments, '--output-dir', folder], timeoutMs);
    const scenarioFolders = await readdir(folder);
    if (scenarioFolders.length === 0) throw new Error(`No scenario was run:\n${ended.output}`);
    const checks = await Promise.all(scenarioFolders.map((name) => readChecks(folder, name)));
    return { checks: checks.flat(), ...ended };
  } finally {
    await rm(folder, { recursive: true });
  }
}

function execute(programArguments: string[], timeout: number): Promise<Omit<Run, 'checks'>> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [program, ...programArguments],
      { maxBuffer: Number.POSITIVE_INFINITY, timeout },
      (error, stdout, stderr) => resolve({ isPassed: error === null, output: stdout + stderr }),
    );
  });
}

async function readChecks(folder: string, scenarioFolder: string): Promise<Check[]> {
  const scenario = /^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(scenarioFolder)?.[1];
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
