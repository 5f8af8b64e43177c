import { type Lease, SharedToolboxes } from './adk/shared-toolboxes.ts';
import { SwitchboardToolset, type ToolFilter } from './adk/toolset.ts';
import { LocalToolbox, projectOf } from './agent/local-toolbox.ts';
import { needNode } from './agent/node-version.ts';
import { onceEach, type Toolbox } from './agent/toolbox.ts';
import type { ServerEntry } from './config/entry.ts';
import { SwitchboardError } from './errors.ts';

needNode();

export type { ServerEntry, SwitchboardToolset, ToolFilter };

export interface AdkToolsOptions {
  /**
   * A project of a running Switchboard: `http://127.0.0.1:7400/mcp/<project>`. All toolsets of this process with the
   * same URL share one connection.
   */
  url?: string | undefined;
  /** MCP servers that run only for this toolset, instead of a project, as in `mcpServers` of a config file. */
  servers?: Record<string, ServerEntry> | undefined;
  /** Selects tools: names, patterns with `*`, or an ADK predicate. Default: all. */
  filter?: ToolFilter | undefined;
  /**
   * How long connections and servers stay open for the next run of an agent. Until then they keep the process alive,
   * unless the toolset is stopped. Default: 30 seconds.
   */
  keepMs?: number | undefined;
  /** Receives warnings for the user. Default: they go to stderr. */
  onWarning?: ((message: string) => void) | undefined;
}

/** By URL. Global, because all toolsets of the process share it. */
const projects = new SharedToolboxes();

/** The tools of a project or of `servers`, for an ADK agent. Connects when they are first listed. */
export function adkTools(options: AdkToolsOptions): SwitchboardToolset {
  const {
    url,
    servers,
    filter,
    keepMs = 30_000,
    onWarning: warn = (message) => console.warn(`switchboard: ${message}`),
  } = options;
  // Reopening would repeat the same warnings.
  const onWarning = onceEach(warn);
  if ((url === undefined) === (servers === undefined)) {
    const what = 'adkTools takes either `url`, a project of a running Switchboard, or `servers` of its own.';
    throw new SwitchboardError('invalid_config', what);
  }
  if (url !== undefined) {
    const address = addressOf(url);
    const open = () => new LocalToolbox({ ...projectOf(address), names: 'as-is', onWarning });
    return new SwitchboardToolset({ take: () => projects.lease(address, open), filter, keepMs });
  }
  const open = () => new LocalToolbox({ servers: servers!, names: 'as-is', onWarning });
  // Reports invalid options now instead of during a run.
  open();
  return new SwitchboardToolset({ take: () => owned(open()), filter, keepMs });
}

/** Normalizes the URL. */
function addressOf(url: string): string {
  if (URL.canParse(url)) return new URL(url).href;
  const what = `"${url}" is not a URL. A project of a running Switchboard is like http://127.0.0.1:7400/mcp/default.`;
  throw new SwitchboardError('invalid_config', what);
}

function owned(toolbox: Toolbox): Lease {
  return { toolbox, release: () => toolbox.stop() };
}
