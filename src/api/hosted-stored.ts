import { parseLimits } from '../config/limits.ts';
import { configShape, environment } from './hosted-fields.ts';
import { type HostedConfig, type HostedLimits, hostedProblems, limitsOf, usual } from './hosted-input.ts';

const shape = { ...configShape, environment: environment.optional() };

/**
 * A hosted server as the database has it, where everybody may write. What is missing is as usual; so is what cannot be,
 * but then there are problems, and it must not be run.
 */
export function readStored(
  config: Readonly<Record<string, unknown>>,
  limits: Readonly<Record<string, unknown>>,
): { config: HostedConfig; limits: HostedLimits; problems: string[] } {
  const problems: string[] = [];
  const read = Object.entries(shape).flatMap(([key, field]) => {
    const { success, data, error } = field.safeParse(config[key]);
    if (!success) problems.push(`mcp_config.${key} ${error.issues[0]!.message}`);
    return success && data !== undefined ? [[key, data] as const] : [];
  });
  const complete = { ...usual, ...Object.fromEntries(read) };
  const parsed = parseLimits(limits);
  const wrongLimits = 'problems' in parsed ? parsed.problems : [];
  problems.push(
    ...wrongLimits.map(({ path, message }) => `resource_limits.${path.join('.')} ${message}`),
    ...hostedProblems(complete).map(({ path, message }) => `mcp_config.${path.join('.')} ${message}`),
  );
  return { config: complete, limits: limitsOf(limits), problems };
}
