import { join } from 'node:path';
import { settingKeys } from '../config/choices.ts';
import { checkStored, type ServerConfig, type ServerDefaults } from '../config.ts';
import type { ServerRow } from '../store/servers.ts';

const fileKeys: Record<string, string> = Object.fromEntries(
  Object.entries(settingKeys).map(([key, column]) => [column, key]),
);

/** Throws if the stored configuration is invalid. */
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
  // The file does not exist; relative paths resolve against its folder.
  const config = checkStored(row.name, entry, defaults, join(folder, 'none'));
  return { ...config, project };
}

/** A placeholder for an invalid configuration. */
export function unusable({ name, enabled }: ServerRow, defaults: ServerDefaults): ServerConfig {
  return checkStored(name, { command: name, enabled }, defaults, '/none');
}
