import { usageError } from './exit.ts';

/** What a hosted server can be given on the command line. */
export interface HostFlags {
  name: string;
  project: string;
  volume?: string[];
  env?: Record<string, string>;
  cpu?: string;
  memory?: string;
  disk?: string;
  pids?: number;
  port?: { container: number; host?: number };
  path?: string;
  stdio?: boolean;
  provider?: string;
  restart?: string;
  network?: boolean;
  writableRoot?: boolean;
}

/** A new hosted server as the API takes it. */
export function newHosted(image: string | undefined, words: string[], flags: HostFlags): object {
  const { name, project, volume, env, cpu, memory, disk, pids, port, path, stdio, provider } = flags;
  const isProcess = provider === 'process';
  // A process has no image: what stands in its place is the command.
  const [command, ...args] = isProcess && image !== undefined ? [image, ...words] : words;
  if (isProcess && command === undefined) {
    throw usageError(
      `Say what to run: switchboard host --name ${name} --provider process -- <command> [arguments].`,
    );
  }
  if (!isProcess && image === undefined) {
    throw usageError(`Say which image to run: switchboard host <image> --name ${name}.`);
  }
  const limits = { cpu, memory, disk, pids };
  const isLimited = Object.values(limits).some((limit) => limit !== undefined);
  return {
    ...{ name, project_id: project, image: isProcess ? undefined : image },
    ...(command === undefined ? {} : { command, args }),
    ...{ volumes: volume, environment: env, provider, restart_policy: flags.restart },
    ...(port === undefined
      ? {}
      : { port: port.host === undefined ? port.container : port, path, stdio_bridge: stdio === true }),
    ...{ network: flags.network, writable_root: flags.writableRoot },
    ...(isLimited ? { resource_limits: limits } : {}),
  };
}
