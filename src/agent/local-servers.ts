import { join } from 'node:path';
import type { ServerEntry } from '../config/entry.ts';
import { describeProblem, invalidConfiguration } from '../config/problems.ts';
import { checkServer, checkStored } from '../config/server.ts';
import { nameProblemsOf } from '../config/server-names.ts';
import { readSettings } from '../config/settings.ts';
import type { ServerConfig, Settings } from '../config.ts';

/** The servers of a toolbox as they are run, and the settings that hold for all. */
export function localServers(
  servers: Readonly<Record<string, ServerEntry>>,
  warned: (message: string) => void,
): { configs: ServerConfig[]; settings: Settings } {
  const { settings, defaults } = readSettings({});
  // Relative paths are relative to where the process runs.
  const place = join(process.cwd(), 'servers');
  const configs = Object.entries(servers).map(([name, entry]) => {
    for (const warning of checkServer(name, entry, []).warnings)
      warned(`The server "${name}": ${describeProblem(warning)}`);
    const config = checkStored(name, entry, defaults!, place);
    // There is one client, and it wants to know all tools before it begins.
    return { ...config, startup: 'sequential' as const, isolation: 'shared' as const };
  });
  const problems = nameProblemsOf(new Map(Object.entries(servers)), []);
  if (problems.length > 0) throw invalidConfiguration('the servers', problems);
  return { configs, settings: settings! };
}
