import type { ServerConfig } from '../config.ts';
import type { ServerRow } from '../store/servers.ts';
import type { HostedRow } from './hosted-rows.ts';

/** A server as it is written down, whether it runs or not. */
export interface ListedServer {
  name: string;
  config: ServerConfig;
  /** Undefined where it stands in the configuration file, or is one that we run. */
  row: ServerRow | undefined;
  /** Where we run it. */
  hosted?: HostedRow;
  isEnabled: boolean;
  /** Why it cannot be used. */
  problem?: string;
}
