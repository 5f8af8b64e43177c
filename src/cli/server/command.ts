import { type Command, Option } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import {
  header,
  jsonOption,
  list,
  pairs,
  projectOption,
  urlOption,
  wholeNumber,
  yesOption,
} from '../options.ts';
import { unsettable } from './flags.ts';

const help = `
Examples:
  switchboard server add files -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  switchboard server add github --endpoint https://api.githubcopilot.com/mcp/ \\
      --header 'Authorization=Bearer \${GITHUB_TOKEN}'
  switchboard server set files --env LEVEL=debug --unset cwd
  switchboard server disable files -P research

The command of a server stands behind --. What is secret is written as \${NAME} and kept with:
switchboard secret set NAME. "rm" asks first on a terminal, and does not in scripts.`;

export function addServerCommands(program: Command, setExitCode: SetExitCode): void {
  const server = program
    .command('server')
    .description('list, add, change, test and remove the servers of a project')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  server
    .command('ls')
    .description('list the servers of a project')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).listServers(flags));

  server
    .command('show')
    .description('show a server with all its settings')
    .argument('<name>')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name, flags) => (await load()).showServer(name, flags));

  const add = server
    .command('add')
    .description(
      'add a server, and connect to it to see whether it works (exit code 1: added, but it does not)',
    )
    .argument('<name>')
    .argument('[command...]', 'behind --: what starts it, with its arguments')
    .option('--disabled', 'do not use it yet')
    .option('--no-test', 'do not connect to it now to see whether it works')
    .showHelpAfterError(
      '(the command of a server stands behind --: switchboard server add files -- npx -y …)',
    )
    .action(async (name, command, flags) =>
      setExitCode(await (await load()).addServer(name, command, flags)),
    );
  addServerOptions(add);

  const set = server
    .command('set')
    .description('change a server; what is not named stays as it is')
    .argument('<name>')
    .argument('[command...]', 'behind --: what starts it, with its arguments')
    .option('--name <name>', 'its new name')
    .option('--unset <what>', `take away one of ${unsettable.join(', ')} (repeatable)`, list)
    .action(async (name, command, flags) => (await load()).changeServer(name, command, flags));
  addServerOptions(set);

  for (const [word, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const) {
    server
      .command(word)
      .description(enabled ? 'use a server' : 'do not use a server for now; calls that run are finished')
      .argument('<name>')
      .addOption(projectOption())
      .addOption(urlOption())
      .addOption(jsonOption())
      .action(async (name, flags) => (await load()).switchServer(name, enabled, flags));
  }

  server
    .command('test')
    .description('connect to a server, apart from what runs, and say what it offers')
    .argument('<name>')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name, flags) => setExitCode(await (await load()).testServer(name, flags)));

  server
    .command('rm')
    .description('remove a server')
    .argument('<name>')
    .addOption(projectOption())
    .addOption(yesOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name, flags) => setExitCode(await (await load()).removeServer(name, flags)));
}

function addServerOptions(command: Command): void {
  command
    .option('--endpoint <url>', 'its address, where it is not started by a command')
    .addOption(new Option('--transport <kind>', 'how the endpoint is spoken to').choices(['http', 'sse']))
    .option('--header <NAME=value>', 'a header for the endpoint (repeatable)', header)
    .option('-e, --env <NAME=value>', 'a variable for the command (repeatable)', pairs('--env'))
    .option('--cwd <folder>', 'where the command runs')
    .option('--description <text>', 'what it is for')
    .option('--group <name>', 'servers of one group offer the same tools and share the load')
    .option('--replicas <number>', 'how many instances of it run', wholeNumber)
    .option('--label <KEY=value>', 'what clients can prefer it by (repeatable)', pairs('--label'))
    .option('--concurrency <number>', 'how many calls each replica works on at a time', wholeNumber)
    .addOption(
      new Option('--isolation <kind>', 'one for all clients, or one for each').choices(['shared', 'session']),
    )
    .addOption(
      new Option('--era <era>', 'the only protocol era to connect it in').choices([
        'auto',
        'legacy',
        'modern',
      ]),
    )
    .option('--timeout-ms <number>', 'how long a call may take', wholeNumber)
    .option('--max-timeout-ms <number>', 'how long it may take while it tells progress', wholeNumber)
    .option('--idle-stop-ms <number>', 'after how long without a call it is stopped; 0 is never', wholeNumber)
    .addOption(
      new Option('--startup <how>', 'on first use, or with Switchboard').choices([
        'lazy',
        'sequential',
        'parallel',
      ]),
    )
    .option('--prefix <text>', 'stands in front of its names instead of its own name')
    .option(
      '--allow-tool <pattern>',
      'offer only these of its tools; * stands for anything (repeatable)',
      list,
    )
    .option('--deny-tool <pattern>', 'do not offer these of its tools (repeatable)', list)
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption());
}
