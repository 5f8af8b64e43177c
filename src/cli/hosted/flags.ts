import { usageError } from '../exit.ts';

export interface HostFlags {
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

export interface ChangeFlags extends HostFlags {
  image?: string;
  arg?: string[];
  unsetEnv?: string[];
}

export function newHosted(
  image: string | undefined,
  words: string[],
  flags: HostFlags & { name: string; project: string },
): object {
  const { name, project, provider } = flags;
  const isProcess = provider === 'process';
  // A process has no image, so the first word is its command.
  const [command, ...args] = isProcess && image !== undefined ? [image, ...words] : words;
  if (isProcess && command === undefined) {
    throw usageError(
      `There is no command to run: use switchboard host --name ${name} --provider process -- <command> [arguments].`,
    );
  }
  if (!isProcess && image === undefined) {
    throw usageError(`There is no image to run: use switchboard host <image> --name ${name}.`);
  }
  return {
    ...{ name, project_id: project, image: isProcess ? undefined : image },
    ...(command === undefined ? {} : { command, args }),
    ...settingsOf(flags),
  };
}

export function changesOf(words: string[], flags: ChangeFlags): object {
  const { image, arg, env, unsetEnv = [] } = flags;
  const [command, ...args] = words;
  if (command !== undefined && arg !== undefined) {
    throw usageError('--arg and a command after -- cannot be combined: put the arguments after the command.');
  }
  const removed = Object.fromEntries(unsetEnv.map((name) => [name, null]));
  const changes = {
    ...settingsOf(flags),
    ...{ image, args: arg },
    ...(command === undefined ? {} : { command, args }),
    environment: env === undefined && unsetEnv.length === 0 ? undefined : { ...env, ...removed },
  };
  if (Object.values(changes).every((value) => value === undefined)) {
    throw usageError(
      'Nothing to change: use an option such as --image or --memory. See: switchboard hosted set --help',
    );
  }
  return changes;
}

function settingsOf(flags: HostFlags): object {
  const { volume, env, cpu, memory, disk, pids, port, path, stdio, provider } = flags;
  const limits = { cpu, memory, disk, pids };
  const isLimited = Object.values(limits).some((limit) => limit !== undefined);
  return {
    ...{ volumes: volume, environment: env, provider, restart_policy: flags.restart },
    ...(port === undefined
      ? { path, stdio_bridge: stdio }
      : { port: port.host === undefined ? port.container : port, path, stdio_bridge: stdio === true }),
    ...{ network: flags.network, writable_root: flags.writableRoot },
    ...(isLimited ? { resource_limits: limits } : {}),
  };
}
