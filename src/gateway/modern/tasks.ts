import { SwitchboardError } from '../../errors.ts';
import type { ServerFacts } from '../../upstreams/server-facts.ts';

/** A modern task: its replica, and the replica's own id of the task. */
export interface TaskAddress {
  /** Server names are unique only within a project, and a qualifier depends on the scope. */
  project: string;
  server: string;
  number: number;
  own: string;
}

const EXTENSION = 'io.modelcontextprotocol/tasks';
const MARK = 'sb-task.';

/** The id that clients get. It contains the address, so no state is kept for tasks. */
export function publicTaskId({ project, server, number, own }: TaskAddress): string {
  return MARK + Buffer.from(JSON.stringify([project, server, number, own])).toString('base64url');
}

/** Undefined if the id is not ours. */
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

export function supportsTasks(capabilities: ServerFacts['capabilities'] | undefined): boolean {
  const { extensions } = capabilities ?? {};
  return typeof extensions === 'object' && extensions !== null && EXTENSION in extensions;
}

/** Throws unless the client declares support for tasks. */
export function requireTasks(capabilities: Record<string, unknown>): void {
  if (supportsTasks(capabilities)) return;
  throw new SwitchboardError(
    'missing_capability',
    `The client must declare the extension ${EXTENSION} with the request.`,
    {
      data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } },
    },
  );
}
