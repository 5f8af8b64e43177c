import { Argument, type Command, Option } from 'commander';
import { DEFAULT_PROJECT, listable, type SetExitCode } from '../defaults.ts';
import { anyProjectOption, jsonOption, projectOption, urlOption } from '../options.ts';

/** Commands that act as a client of a running Switchboard. */
export function addClientCommands(program: Command, setExitCode: SetExitCode): void {
  program
    .command('ls')
    .description('list servers, tools, resources or prompts; servers that were never connected are started')
    .addArgument(new Argument('[what]', 'what to list').choices(listable).default('servers'))
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .option('-c, --config <file>', 'use this configuration instead of a running Switchboard')
    .addOption(jsonOption())
    .action(async (what, flags) => setExitCode(await (await import('./ls.ts')).ls(what, flags)));

  program
    .command('watch')
    .description('show the state of servers, and every change as it happens (stop it with Ctrl-C)')
    .argument('[server...]', 'only these servers (default: all)')
    .addOption(projectOption())
    .addOption(urlOption())
    .option('--json', 'print a JSON object per line; `from` is null for the first state of a server')
    .action(async (names, flags) => setExitCode(await (await import('./watch.ts')).watch(names, flags)));

  program
    .command('call')
    .description('call a tool')
    .argument('<tool>', 'its name, as `switchboard ls tools` shows it, or server__tool')
    .argument('[arguments...]', 'one JSON object, or key=value words')
    .addOption(anyProjectOption())
    .addOption(urlOption())
    .option('-c, --config <file>', 'use this configuration instead of a running Switchboard')
    .option('--json', 'print the whole result as JSON')
    .action(async (tool, words, flags) =>
      setExitCode(await (await import('./call.ts')).call(tool, words, flags)),
    );

  program
    .command('logs')
    .description("show the last lines of a server's log")
    .argument('<server>')
    .option('-f, --follow', 'of a hosted server: continue with new lines (stop it with Ctrl-C)')
    .addOption(
      new Option('-P, --project <project>', 'id or name of the project').default(undefined, DEFAULT_PROJECT),
    )
    .addOption(urlOption())
    .addOption(jsonOption('print JSON; with --follow, an object per line'))
    .action(async (server, flags) => setExitCode(await (await import('./logs.ts')).logs(server, flags)));
}
