import type { z } from 'zod';
import { SwitchboardError } from '../errors.ts';

/** For example ['mcpServers', 'github', 'args', 1]. */
export type Path = readonly PropertyKey[];

export interface Problem {
  path: Path;
  message: string;
}

/** Per server, and for the settings. */
export const MAX_PROBLEMS = 100;

export function problemsOf(error: z.ZodError, base: Path): Problem[] {
  const issues = error.issues.slice(0, MAX_PROBLEMS);
  return issues.map(({ path, message }) => ({ path: [...base, ...path], message }));
}

/**
 * Checks unvalidated input, so that this problem is reported together with others; values that are not limits are skipped.
 */
export function limitProblems(
  path: Path,
  written: unknown,
  [lowerKey, usual]: [key: string, usual: number | undefined],
  upperKey: string,
): Problem[] {
  const { [lowerKey]: own, [upperKey]: upper } = (written ?? {}) as Record<string, unknown>;
  const lower = own ?? usual;
  if (!isLimit(lower) || !isLimit(upper) || upper >= lower) return [];
  const message = `must be at least "${lowerKey}", which is ${lower} here: raise it, or lower "${lowerKey}"`;
  return [{ path: [...path, upperKey], message }];
}

export function isLimit(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0;
}

export function invalidConfiguration(file: string, problems: Problem[]): SwitchboardError {
  const lines = problems.map(describeProblem);
  const message =
    lines.length === 1 ? `${file}: ${lines[0]}` : `${file}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
  return new SwitchboardError('invalid_config', message, {
    data: {
      file,
      problems: problems.map(({ path, message }) => ({ path: describePath(path), message })),
    },
  });
}

export function describeProblem({ path, message }: Problem): string {
  return path.length === 0 ? message : `${describePath(path)}: ${message}`;
}

/** As in JavaScript: mcpServers.github.args[1]. */
function describePath(path: Path): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const key = String(step);
      if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `[${JSON.stringify(key)}]`;
      return index === 0 ? key : `.${key}`;
    })
    .join('');
}
