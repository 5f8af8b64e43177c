import type { ServerConfig } from '../config.ts';
import type { ServerRow } from '../store/servers.ts';
import type { HostedRow } from './hosted-rows.ts';

/** A configured server, enabled or not. */
export interface ListedServer {
  name: string;
  config: ServerConfig;
  /** Undefined for servers of the configuration file and for hosted servers. */
  row: ServerRow | undefined;
  hosted?: HostedRow;
  isEnabled: boolean;
  problem?: string;
}
