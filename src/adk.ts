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
   * A project of a running Switchboard: `http://127.0.0.1:7400/mcp/<project>`. All toolsets of this process that name the
   * same one share a connection.
   */
  url?: string | undefined;
  /** MCP servers that run for this toolset alone, in place of a project; as in `mcpServers` of a configuration file. */
  servers?: Record<string, ServerEntry> | undefined;
  /** Which tools it has: names, patterns with `*`, or a predicate of the ADK. Without it, all. */
  filter?: ToolFilter | undefined;
  /**
   * For how long it keeps its connections and servers after a run of an agent, for the next one. Until they are gone, or it
   * is stopped, the process does not end by itself. 30 seconds where nothing is said.
   */
  keepMs?: number | undefined;
  /** Told of what a user should know. Without it, warnings go to stderr. */
  onWarning?: ((message: string) => void) | undefined;
}

/** By their addresses. The one thing here that a process has once: what it shares has to be somewhere. */
const projects = new SharedToolboxes();

/** The tools of a project, or of servers of its own, for an agent of the ADK. It connects when an agent first asks for them. */
export function adkTools(options: AdkToolsOptions): SwitchboardToolset {
  const {
    url,
    servers,
    filter,
    keepMs = 30_000,
    onWarning: warn = (message) => console.warn(`switchboard: ${message}`),
  } = options;
  // What is opened again has the same to say again.
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
  // What is wrong with them is said here, and not in the middle of a run.
  open();
  return new SwitchboardToolset({ take: () => owned(open()), filter, keepMs });
}

/** One address is written in one way only. */
function addressOf(url: string): string {
  if (URL.canParse(url)) return new URL(url).href;
  const what = `"${url}" is not a URL. A project of a running Switchboard is like http://127.0.0.1:7400/mcp/default.`;
  throw new SwitchboardError('invalid_config', what);
}

function owned(toolbox: Toolbox): Lease {
  return { toolbox, release: () => toolbox.stop() };
}
