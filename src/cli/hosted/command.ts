import { type Command, InvalidArgumentError, Option } from 'commander';
import { providers, restartPolicies } from '../../config/choices.ts';
import type { SetExitCode } from '../defaults.ts';
import {
  anyProjectOption,
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

The image is run in a sandbox of its own: half a core, 512 MB, no network and no files but its volumes, unless you say
more. Its tools are in the catalog of its project. What is secret is written as \${NAME} and kept with: switchboard secret set NAME.`;

const hostedHelp = `
Examples:
  switchboard hosted
  switchboard hosted show notes
  switchboard hosted set notes --image ghcr.io/acme/notes:3
  switchboard logs -f notes
  switchboard restart notes
  switchboard rm notes --volumes

A server is called by its name, or by its id; where several projects have the name, say which with -P.`;

const setHelp = `
Examples:
  switchboard hosted set notes --image ghcr.io/acme/notes:3
  switchboard hosted set notes --memory 1G --env MODE=fast --unset-env TRACE

What is not named stays as it is: the defaults above are those of new servers. A new image is fetched before the old
instance is stopped: where it cannot be had, the old one goes on, and the exit code is 1.`;

function ports(text: string): HostFlags['port'] {
  const [, container, host] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (container === undefined) throw new InvalidArgumentError('It must be 8080 or 8080:18080.');
  return { container: Number(container), ...(host === undefined ? {} : { host: Number(host) }) };
}

export function addHostedCommands(program: Command, setExitCode: SetExitCode): void {
  const host = program
    .command('host')
    .description('run an image as a server, in a sandbox of its own, and keep it running')
    .argument('[image]', 'none with the provider "process"')
    .argument('[command...]', 'behind --: what to run instead of what the image says, with its arguments')
    .requiredOption('--name <name>', 'what it is called')
    .option('--network', 'let it reach the network')
    .option('--writable-root', 'let it write to all of its file system')
    .addOption(detachOption())
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption('print JSON, when it is ready or has failed'))
    .addHelpText('after', hostHelp)
    .action(async (image, command, flags) =>
      setExitCode(await (await import('./host.ts')).host(image, command, flags)),
    );

  addSettings(host);

  const hosted = program
    .command('hosted')
    .description('list the servers that Switchboard runs, show one, and change it')
    .addHelpText('afterAll', hostedHelp);
  const load = () => import('./actions.ts');

  hosted
    .command('ls', { isDefault: true })
    .description('list them')
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).listHosted(flags));

  hosted
    .command('show')
    .description('show one with all its settings, and what it uses')
    .argument('<server>')
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (server, flags) => (await load()).showHosted(server, flags));

  const set = hosted
    .command('set')
    .description(
      'change one, such as to another image, and wait until it is ready so; what is not named stays',
    )
    .argument('<server>')
    .argument('[command...]', 'behind --: what to run instead of what the image says, with its arguments')
    .option('--image <image>', 'the image to run')
    .option(
      '--arg <argument>',
      'an argument for what the image runs, instead of those of now (repeatable)',
      list,
    )
    .option('--unset-env <NAME>', 'take a variable away (repeatable)', list)
    .option('--network', 'let it reach the network')
    .option('--no-network', 'do not let it reach the network')
    .option('--writable-root', 'let it write to all of its file system')
    .option('--no-writable-root', 'let it write to its volumes and /tmp only')
    .addOption(detachOption())
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .addOption(jsonOption('print JSON, when it is ready or has failed'))
    .addHelpText('after', setHelp)
    .action(async (server, command, flags) =>
      setExitCode(await (await load()).changeHosted(server, command, flags)),
    );
  addSettings(set);

  program
    .command('restart')
    .description('start a hosted server anew; its crashes are forgotten')
    .argument('<server>')
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (server, flags) => (await load()).restartHosted(server, flags));

  program
    .command('stop')
    .description('stop a hosted server until it is started again')
    .argument('<server>')
    .option('-d, --detach', 'do not wait until it has ended')
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (server, flags) => setExitCode(await (await load()).stopHosted(server, flags)));

  program
    .command('start')
    .description('start a hosted server that was stopped')
    .argument('<server>')
    .addOption(detachOption())
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (server, flags) => setExitCode(await (await load()).startHosted(server, flags)));

  program
    .command('rm')
    .description('stop a hosted server and remove it')
    .argument('<server>')
    .option('--volumes', 'remove what it has kept too, which cannot be undone')
    .addOption(anyProjectOption())
    .addOption(yesOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (server, flags) => setExitCode(await (await load()).removeHosted(server, flags)));
}

function detachOption(): Option {
  return new Option('-d, --detach', 'do not wait until it is ready');
}

/** What a new one is given, and one that is there may be changed to. */
function addSettings(command: Command): void {
  command
    .option('--volume <path>', 'a path inside whose contents are kept (repeatable)', list)
    .option('-e, --env <NAME=value>', 'a variable (repeatable)', pairs('--env'))
    .option('--cpu <cores>', 'how much of the processors it may use (default: 0.5)')
    .option('--memory <size>', 'how much memory, such as 1G (default: 512M)')
    .option('--disk <size>', 'how much disk (default: 1G)')
    .option('--pids <number>', 'how many processes and threads (default: 128)', wholeNumber)
    .option(
      '--port <port[:host-port]>',
      'it serves MCP over HTTP on this port inside, published on 127.0.0.1 at the host port (default: any)',
      ports,
    )
    .option('--path <path>', 'where on that port (default: /mcp)')
    .option('--stdio', 'it speaks MCP over stdin and stdout although it has a port')
    .addOption(
      new Option(
        '--provider <provider>',
        'what runs it (default: the first of these that isolates and is there)',
      ).choices(providers),
    )
    .addOption(
      new Option('--restart <when>', 'when it is started again (default: always)').choices(restartPolicies),
    );
}
