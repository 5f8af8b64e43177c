import { SwitchboardError } from '../../errors.ts';
import type { ServerFacts } from '../../upstreams/server-facts.ts';

/** A task of the modern era: which replica does it, and that one's own id of it. */
export interface TaskAddress {
  /** Names of servers are unique in a project only, and what stands for one in a catalog depends on who looks. */
  project: string;
  server: string;
  number: number;
  own: string;
}

const EXTENSION = 'io.modelcontextprotocol/tasks';
const MARK = 'sb-task.';

/** The id under which clients know a task: nothing else has to be remembered of it. */
export function publicTaskId({ project, server, number, own }: TaskAddress): string {
  return MARK + Buffer.from(JSON.stringify([project, server, number, own])).toString('base64url');
}

/** Undefined where the id is none of ours. */
export function taskOf(id: string): TaskAddress | undefined {
  if (!id.startsWith(MARK)) return undefined;
  try {
    const parts = JSON.parse(Buffer.from(id.slice(MARK.length), 'base64url').toString()) as unknown[];
    const [project, server, number, own] = parts;
    if (typeof project !== 'string' || typeof server !== 'string') return undefined;
    if (typeof number !== 'number' || typeof own !== 'string') return undefined;
    const address = { project, server, number, own };
    return publicTaskId(address) === id ? address : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a server, or a client, knows tasks of the modern era. */
export function knowsTasks(capabilities: ServerFacts['capabilities'] | undefined): boolean {
  const { extensions } = capabilities ?? {};
  return typeof extensions === 'object' && extensions !== null && EXTENSION in extensions;
}

/** Only a client that says with the request that it knows tasks may ask for one. */
export function requireTasks(capabilities: Record<string, unknown>): void {
  if (knowsTasks(capabilities)) return;
  throw new SwitchboardError(
    'missing_capability',
    `The request needs a client with the extension ${EXTENSION}.`,
    {
      data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } },
    },
  );
}
