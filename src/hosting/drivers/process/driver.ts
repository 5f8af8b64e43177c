import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ChildRecord, childEnvironment, describeSpawnError } from '../../../channels/stdio.ts';
import { SwitchboardError } from '../../../errors.ts';
import type { Driver, Instance, InstanceEvents, InstanceSpec } from '../../driver.ts';
import { ProcessInstance } from './instance.ts';
import { ProcessVolumes } from './volumes.ts';

export interface ProcessDriverOptions {
  home: string;
  /** Lets the next start kill the children if Switchboard is killed. */
  children: ChildRecord;
}

/**
 * Runs a server as a child process, for development. There is NO isolation: the server has the same access to files and networks
 * as Switchboard, and limits are not enforced.
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
    const cwd = single(Object.values(folders)) ?? process.cwd();
    const child = spawn(command, spec.args, {
      cwd,
      env: childEnvironment(
        process.env,
        { ...environmentOf(spec, folders), ...this.children.environment },
        this.children.inheritsNetwork,
      ),
      stdio: [spec.hasStdio ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      detached: true,
    });
    if (!hasPid(child)) throw describeSpawnError(await spawnError(child), { command, cwd });
    const url = spec.port === undefined ? undefined : `http://127.0.0.1:${spec.port}`;
    return new ProcessInstance(child, { hasStdio: spec.hasStdio, url }, this.children, events.log);
  }
}

function commandOf({ command, image }: InstanceSpec): string {
  if (command !== undefined) return command;
  const why = image === undefined ? '' : ` It cannot run the image "${image}".`;
  throw new SwitchboardError(
    'invalid_config',
    `The provider "process" needs a \`command\`: a program on this machine, such as "npx".${why}`,
  );
}

/** Our variables take precedence, because the server must use this port and these folders. */
function environmentOf(spec: InstanceSpec, folders: Record<string, string>): Record<string, string> {
  return {
    ...spec.environment,
    ...(spec.port === undefined ? {} : { PORT: String(spec.port) }),
    ...(spec.volumes.length === 0 ? {} : { SWITCHBOARD_VOLUMES: JSON.stringify(folders) }),
  };
}

/** A single volume is the working directory, so that a server can use it without configuration. */
function single(folders: string[]): string | undefined {
  return folders.length === 1 ? folders[0] : undefined;
}

function hasPid(child: ChildProcess): child is ChildProcess & { pid: number } {
  return child.pid !== undefined;
}

async function spawnError(child: ChildProcess): Promise<NodeJS.ErrnoException> {
  const [error] = (await once(child, 'error')) as [NodeJS.ErrnoException];
  return error;
}
