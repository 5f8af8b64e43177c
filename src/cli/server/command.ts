import { type Command, Option } from 'commander';
import { eras, isolations, startups } from '../../config/choices.ts';
import type { SetExitCode } from '../defaults.ts';
import { apiCommand, header, list, pairs, projectOption, wholeNumber, yesOption } from '../options.ts';
import { unsettable } from './flags.ts';

const help = `
Examples:
  switchboard server add files -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  switchboard server add github --endpoint https://api.githubcopilot.com/mcp/ \\
      --header 'Authorization=Bearer \${GITHUB_TOKEN}'
  switchboard server set files --env LEVEL=debug --unset cwd
  switchboard server disable files -P research

The command of a server comes after --. Write secrets as \${NAME}, and set them with: switchboard secret set NAME.
"rm" asks for confirmation on a terminal, and not in scripts.`;

export function addServerCommands(program: Command, setExitCode: SetExitCode): void {
  const server = program
    .command('server')
    .description('list, add, change, test and remove the servers of a project')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');
  const add = (usage: string, description: string, ...options: Option[]) =>
    apiCommand(server, usage, description, [projectOption(), ...options]);

  add('ls', 'list the servers of a project').action(async (flags) => (await load()).listServers(flags));
  add('show <name>', 'show a server with all its settings').action(async (name, flags) =>
    (await load()).showServer(name, flags),
  );
  addSettings(add('add <name>', 'add a server, and connect to it (exit code 1: added, but it does not work)'))
    .option('--disabled', 'add it disabled')
    .option('--no-test', 'do not connect to it now')
    .showHelpAfterError('(the command of a server comes after --: switchboard server add files -- npx -y …)')
    .action(async (name, command, flags) =>
      setExitCode(await (await load()).addServer(name, command, flags)),
    );
  addSettings(add('set <name>', 'change a server; omitted options keep their values'))
    .option('--name <name>', 'its new name')
    .option('--unset <what>', `remove one of ${unsettable.join(', ')} (repeatable)`, list)
    .action(async (name, command, flags) => (await load()).changeServer(name, command, flags));
  add('enable <name>', 'enable a server').action(async (name, flags) =>
    (await load()).switchServer(name, true, flags),
  );
  add('disable <name>', 'disable a server; calls in flight are finished').action(async (name, flags) =>
    (await load()).switchServer(name, false, flags),
  );
  add('test <name>', 'connect to a server, apart from its running replicas, and show what it offers').action(
    async (name, flags) => setExitCode(await (await load()).testServer(name, flags)),
  );
  add('rm <name>', 'remove a server', yesOption()).action(async (name, flags) =>
    setExitCode(await (await load()).removeServer(name, flags)),
  );
}

function addSettings(command: Command): Command {
  return command
    .argument('[command...]', 'after --: the command that starts it, with its arguments')
    .option('--endpoint <url>', 'its address, if no command starts it')
    .addOption(new Option('--transport <kind>', 'the transport of the endpoint').choices(['http', 'sse']))
    .option('--header <NAME=value>', 'a header for the endpoint (repeatable)', header)
    .option('-e, --env <NAME=value>', 'a variable for the command (repeatable)', pairs('--env'))
    .option('--cwd <folder>', 'the working directory of the command')
    .option('--description <text>', 'what it is for')
    .option('--group <name>', 'servers of one group offer the same tools and share the load')
    .option('--replicas <number>', 'how many instances to run', wholeNumber)
    .option('--label <KEY=value>', 'a label that clients can select it by (repeatable)', pairs('--label'))
    .option('--concurrency <number>', 'how many calls each replica handles at a time', wholeNumber)
    .addOption(
      new Option('--isolation <kind>', 'one process for all clients, or one for each').choices(isolations),
    )
    .addOption(new Option('--era <era>', 'the protocol era to connect with').choices(eras))
    .option('--timeout-ms <number>', 'how long a call may take', wholeNumber)
    .option('--max-timeout-ms <number>', 'how long a call may take while it reports progress', wholeNumber)
    .option('--idle-stop-ms <number>', 'stop it after this long without a call; 0 for never', wholeNumber)
    .addOption(new Option('--startup <how>', 'on first use, or with Switchboard').choices(startups))
    .option('--prefix <text>', 'used in front of its names instead of its own name')
    .option('--allow-tool <pattern>', 'offer only these tools; * matches any text (repeatable)', list)
    .option('--deny-tool <pattern>', 'do not offer these tools (repeatable)', list);
}
