import { join } from 'node:path';
import { settingKeys } from '../config/choices.ts';
import { checkStored, type ServerConfig, type ServerDefaults } from '../config.ts';
import type { ServerRow } from '../store/servers.ts';

const fileKeys: Record<string, string> = Object.fromEntries(
  Object.entries(settingKeys).map(([key, column]) => [column, key]),
);

/** The configuration of a server that is kept in a project. Throws where somebody has written a wrong one into the table. */
export function configOf(
  row: ServerRow,
  project: string,
  defaults: ServerDefaults,
  folder: string,
): ServerConfig {
  const settings = Object.entries(row.settings).map(([key, value]) => [fileKeys[key] ?? key, value]);
  const entry = {
    type: row.transport,
    ...row.config,
    ...Object.fromEntries(settings),
    enabled: row.enabled,
  };
  // Relative paths have no file that they could be relative to.
  const config = checkStored(row.name, entry, defaults, join(folder, 'none'));
  return { ...config, project };
}

/** What stands for a configuration that cannot be used. */
export function unusable({ name, enabled }: ServerRow, defaults: ServerDefaults): ServerConfig {
  return checkStored(name, { command: name, enabled }, defaults, '/none');
}
