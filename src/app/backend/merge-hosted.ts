import type { HostedChanges, HostedSettings } from '../../api/hosted-input.ts';
import { invalidInput } from '../../api/http/problems.ts';
import { hostedProblems, limitsOf } from '../../config/hosted.ts';

/** A hosted server after changes. Throws where its parts do not fit each other then. */
export function mergeHosted(hosted: HostedSettings, changes: HostedChanges): HostedSettings {
  const { enabled = hosted.enabled, resource_limits = {}, config: changed } = changes;
  const { environment: changedVariables, ...plain } = changed;
  const variables = Object.entries({ ...hosted.config.environment, ...changedVariables });
  const environment = Object.fromEntries(
    variables.filter((variable): variable is [string, string] => variable[1] !== null),
  );
  const config = { ...hosted.config, ...plain, environment };
  const problems = hostedProblems(config);
  if (problems.length > 0) throw invalidInput(problems);
  return { enabled, resource_limits: limitsOf({ ...hosted.resource_limits, ...resource_limits }), config };
}
