import { type Command, InvalidArgumentError, Option } from 'commander';
import { providers, restartPolicies } from '../../config/choices.ts';
import type { SetExitCode } from '../defaults.ts';
import {
  anyProjectOption,
  apiCommand,
  jsonOption,
  list,
  pairs,
  projectOption,
  urlOption,
  wholeNumber,
  yesOption,
} from '../options.ts';
import type { HostFlags } from './flags.ts';

const hostHelp = `
Examples:
  switchboard host mcp/time --name time
  switchboard host ghcr.io/acme/notes:2 --name notes --volume /data --env 'TOKEN=\${NOTES_TOKEN}' --network
  switchboard host node:24 --name mine --memory 1G -- node server.js
  switchboard host acme/search --name search --port 8080
  switchboard host acme/search --name search --port 8080:18080
  switchboard host --name mine --provider process -- node server.js

The image runs in its own sandbox: by default with half a core, 512 MB, no network, and no files but its volumes. Its
tools are in the catalog of its project. Write secrets as \${NAME}, and set them with: switchboard secret set NAME.`;

const hostedHelp = `
Examples:
  switchboard hosted
  switchboard hosted show notes
  switchboard hosted set notes --image ghcr.io/acme/notes:3
  switchboard logs -f notes
  switchboard restart notes
  switchboard rm notes --volumes

Name a server by its name or its id; if several projects have the name, choose one with -P.`;

const setHelp = `
Examples:
  switchboard hosted set notes --image ghcr.io/acme/notes:3
  switchboard hosted set notes --memory 1G --env MODE=fast --unset-env TRACE

Omitted options keep their values: the defaults above are those of new servers. A new image is pulled before the
old instance is stopped: if that fails, the old one keeps running, and the exit code is 1.`;

const whenReady = 'print JSON, when it is ready or has failed';

function ports(text: string): HostFlags['port'] {
  const [, container, host] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (container === undefined) throw new InvalidArgumentError('Use 8080 or 8080:18080.');
  return { container: Number(container), ...(host === undefined ? {} : { host: Number(host) }) };
}

export function addHostedCommands(program: Command, setExitCode: SetExitCode): void {
  const load = () => import('./actions.ts');
  const host = apiCommand(
    program,
    'host',
    'run an image as a server, in its own sandbox, and keep it running',
    [projectOption(), detachOption()],
    whenReady,
  ).argument('[image]', 'none with the provider "process"');
  addSettings(host)
    .requiredOption('--name <name>', 'its name')
    .addHelpText('after', hostHelp)
    .action(async (image, command, flags) => setExitCode(await (await load()).host(image, command, flags)));

  const hosted = program
    .command('hosted')
    .description('list, show and change the servers that Switchboard runs')
    .addHelpText('afterAll', hostedHelp);
  hosted
    .command('ls', { isDefault: true })
    .description('list hosted servers')
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).listHosted(flags));
  apiCommand(hosted, 'show <server>', 'show a hosted server with all its settings and its usage', [
    anyProjectOption(),
  ]).action(async (server, flags) => (await load()).showHosted(server, flags));
  const set = apiCommand(
    hosted,
    'set <server>',
    'change a hosted server, such as its image, and wait until it is ready',
    [anyProjectOption(), detachOption()],
    whenReady,
  );
  addSettings(set)
    .option('--image <image>', 'the image to run')
    .option('--arg <argument>', 'an argument for the image; replaces the current ones (repeatable)', list)
    .option('--unset-env <NAME>', 'remove a variable (repeatable)', list)
    .option('--no-network', 'do not let it reach the network')
    .option('--no-writable-root', 'let it write to its volumes and /tmp only')
    .addHelpText('after', setHelp)
    .action(async (server, command, flags) =>
      setExitCode(await (await load()).changeHosted(server, command, flags)),
    );

  addLifecycle(program, setExitCode);
}

function addLifecycle(program: Command, setExitCode: SetExitCode): void {
  const load = () => import('./actions.ts');
  const add = (usage: string, description: string, ...options: Option[]) =>
    apiCommand(program, usage, description, [anyProjectOption(), ...options]);

  add('restart <server>', 'restart a hosted server, and clear its crash history').action(
    async (server, flags) => (await load()).restartHosted(server, flags),
  );
  add('stop <server>', 'stop a hosted server until it is started again')
    .option('-d, --detach', 'do not wait until it has stopped')
    .action(async (server, flags) => setExitCode(await (await load()).stopHosted(server, flags)));
  add('start <server>', 'start a hosted server that was stopped', detachOption()).action(
    async (server, flags) => setExitCode(await (await load()).startHosted(server, flags)),
  );
  add('rm <server>', 'stop and remove a hosted server', yesOption())
    .option('--volumes', 'remove its volumes too, which cannot be undone')
    .action(async (server, flags) => setExitCode(await (await load()).removeHosted(server, flags)));
}

function detachOption(): Option {
  return new Option('-d, --detach', 'do not wait until it is ready');
}

function addSettings(command: Command): Command {
  return command
    .argument('[command...]', "after --: the command to run instead of the image's own, with its arguments")
    .option('--volume <path>', 'a path in the instance that persists (repeatable)', list)
    .option('-e, --env <NAME=value>', 'a variable (repeatable)', pairs('--env'))
    .option('--cpu <cores>', 'CPU limit (default: 0.5)')
    .option('--memory <size>', 'memory limit, such as 1G (default: 512M)')
    .option('--disk <size>', 'disk limit (default: 1G)')
    .option('--pids <number>', 'limit of processes and threads (default: 128)', wholeNumber)
    .option(
      '--port <port[:host-port]>',
      'it serves MCP over HTTP on this port inside, published on 127.0.0.1 at the host port (default: any)',
      ports,
    )
    .option('--path <path>', 'the path of MCP on that port (default: /mcp)')
    .option('--stdio', 'it speaks MCP over stdin and stdout although it has a port')
    .option('--network', 'let it reach the network')
    .option('--writable-root', 'let it write to all of its file system')
    .addOption(
      new Option(
        '--provider <provider>',
        'what runs it (default: the first of these that isolates and is available)',
      ).choices(providers),
    )
    .addOption(
      new Option('--restart <when>', 'when to restart it (default: always)').choices(restartPolicies),
    );
}
