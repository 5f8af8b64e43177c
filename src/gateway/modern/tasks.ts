import { createHmac } from 'node:crypto';
import { SwitchboardError } from '../../errors.ts';
import type { Principal } from '../../identity/principal.ts';
import type { ServerFacts } from '../../upstreams/server-facts.ts';
import { isSame } from './request-state.ts';

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

/**
 * The ids that clients get. They contain the address, so no state is kept for tasks. Those of principals other than the local
 * user are signed for their owner, and do not exist for anybody else.
 */
export class TaskIds {
  private readonly key: Buffer;

  constructor(key: Buffer) {
    this.key = key;
  }

  issue(address: TaskAddress, owner: Principal): string {
    const text = encoded(address);
    return owner.kind === 'local' ? MARK + text : `${MARK}${text}.${this.signature(text, owner)}`;
  }

  /** Undefined if the id is not ours, or not of this principal. */
  read(id: string, owner: Principal): TaskAddress | undefined {
    if (!id.startsWith(MARK)) return undefined;
    const [text = '', given, ...more] = id.slice(MARK.length).split('.');
    const isOwn =
      owner.kind === 'local'
        ? given === undefined
        : given !== undefined && isSame(given, this.signature(text, owner));
    return isOwn && more.length === 0 ? decoded(text) : undefined;
  }

  private signature(text: string, { id }: Principal): string {
    return createHmac('sha256', this.key).update(`${id}\n${text}`).digest('base64url');
  }
}

function encoded({ project, server, number, own }: TaskAddress): string {
  return Buffer.from(JSON.stringify([project, server, number, own])).toString('base64url');
}

function decoded(text: string): TaskAddress | undefined {
  try {
    const parts = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    const [project, server, number, own] = parts;
    if (typeof project !== 'string' || typeof server !== 'string') return undefined;
    if (typeof number !== 'number' || typeof own !== 'string') return undefined;
    const address = { project, server, number, own };
    return encoded(address) === text ? address : undefined;
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
