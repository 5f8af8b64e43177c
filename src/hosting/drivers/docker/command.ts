import { execFile } from 'node:child_process';

interface CommandOptions {
  timeoutMs?: number;
  /** Exit codes besides 0 that mean success. */
  allowed?: readonly number[];
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** Runs an administrative program without a shell. Returns its stdout. */
export function runCommand(
  program: string,
  args: readonly string[],
  { timeoutMs = DEFAULT_TIMEOUT_MS, allowed = [] }: CommandOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      // Not every PATH has the programs of root. The rest of our environment may be secret.
      env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/bin:/sbin:/bin`, LC_ALL: 'C' },
    } as const;
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null || (typeof error.code === 'number' && allowed.includes(error.code))) resolve(stdout);
      else reject(new Error(describe(program, error, stderr, timeoutMs), { cause: error }));
    });
  });
}

function describe(
  program: string,
  { code, killed }: { code?: number | string | null | undefined; killed?: boolean | undefined },
  stderr: string,
  timeoutMs: number,
): string {
  if (code === 'ENOENT') return `${program} is not installed`;
  if (killed === true) return `${program} took longer than ${timeoutMs / 1_000} s`;
  const [said = ''] = stderr.trim().split('\n');
  return said === '' ? `${program} failed with ${code}` : `${program} failed: ${said.replace(/\.$/, '')}`;
}
