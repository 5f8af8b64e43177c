import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { childEnvironment } from '../../channels/environment.ts';
import type { ChildRecord } from '../../channels/stdio.ts';
import { SwitchboardError } from '../../errors.ts';
import type { Driver, Instance, InstanceEvents, InstanceSpec } from '../driver.ts';
import { ProcessInstance } from './process/instance.ts';
import { ProcessVolumes } from './process/volumes.ts';

export interface ProcessDriverOptions {
  /** The folder in which volumes are kept. */
  home: string;
  /** Through it the next start ends what we leave behind when we are killed. */
  children: ChildRecord;
}

/**
 * Runs a server as a child process on this very machine: for development. There is NO isolation. The server may read and
 * write all that we may, reach every network, and use as much of the machine as it likes: limits are not enforced.
 */
export class ProcessDriver implements Driver {
  readonly provider = 'process';
  readonly volumes: ProcessVolumes;
  private readonly children: ChildRecord;

  constructor({ home, children }: ProcessDriverOptions) {
    this.volumes = new ProcessVolumes(home);
    this.children = children;
  }

  async unavailable(): Promise<undefined> {}

  async start(spec: InstanceSpec, events: InstanceEvents, signal: AbortSignal): Promise<Instance> {
    signal.throwIfAborted();
    const command = commandOf(spec);
    const folders = await this.volumes.open(spec, spec.volumes);
    await this.children.turn();
    signal.throwIfAborted();
    const child = spawn(command, spec.args, {
      cwd: onlyOne(Object.values(folders)),
      env: childEnvironment(
        process.env,
        { ...environmentOf(spec, folders), ...this.children.environment },
        this.children.inheritsNetwork,
      ),
      stdio: [spec.hasStdio ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      detached: true,
    });
    if (!hasPid(child)) throw describeSpawnError(await whyNot(child), command);
    const url = spec.port === undefined ? undefined : `http://127.0.0.1:${spec.port}`;
    return new ProcessInstance(child, { hasStdio: spec.hasStdio, url }, this.children, events.log);
  }
}

function commandOf({ command, image }: InstanceSpec): string {
  if (command !== undefined) return command;
  const why = image === undefined ? '' : ` It cannot run the image "${image}".`;
  throw new SwitchboardError(
    'invalid_config',
    `The provider "process" needs a \`command\`: it runs a program of this machine, such as "npx".${why}`,
  );
}

/** Ours last: what we publish and keep has to be what the server uses. */
function environmentOf(spec: InstanceSpec, folders: Record<string, string>): Record<string, string> {
  return {
    ...spec.environment,
    ...(spec.port === undefined ? {} : { PORT: String(spec.port) }),
    ...(spec.volumes.length === 0 ? {} : { SWITCHBOARD_VOLUMES: JSON.stringify(folders) }),
  };
}

/** A server that keeps its data where it is started needs to know of no folder, where there is one only. */
function onlyOne(folders: string[]): string | undefined {
  return folders.length === 1 ? folders[0] : undefined;
}

function hasPid(child: ChildProcess): child is ChildProcess & { pid: number } {
  return child.pid !== undefined;
}

async function whyNot(child: ChildProcess): Promise<NodeJS.ErrnoException> {
  const [error] = (await once(child, 'error')) as [NodeJS.ErrnoException];
  return error;
}

function describeSpawnError(error: NodeJS.ErrnoException, command: string): SwitchboardError {
  const why =
    error.code === 'ENOENT'
      ? `"${command}" was not found: install it, or give its whole path`
      : error.code === 'EACCES'
        ? `"${command}" may not be executed`
        : error.message;
  return new SwitchboardError('server_start_failed', `The server's process cannot be started: ${why}.`, {
    cause: error,
  });
}
