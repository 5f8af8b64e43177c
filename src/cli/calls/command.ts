import { type Command, Option } from 'commander';
import { jsonOption, numberUpTo, projectOption, urlOption } from '../options.ts';
import { moment } from '../times.ts';

const help = `
Examples:
  switchboard calls --status error --since 1h
  switchboard calls --server github --follow
  switchboard calls --tool search --limit 1000 --json`;

export function addCallsCommand(program: Command): void {
  program
    .command('calls')
    .description('show the recorded calls of a project, newest last')
    .option('--server <name>', 'only calls to this server')
    .option('--tool <name>', 'only calls of this tool')
    .addOption(
      new Option('--status <status>', 'only calls with this result').choices([
        'ok',
        'tool_error',
        'error',
        'timeout',
        'cancelled',
      ]),
    )
    .option('--principal <principal>', 'only calls of this key or person: its id or name, or local')
    .option('--since <time>', 'only calls since a time, or an age such as 90s, 15m, 2h, 7d', moment)
    .option('--until <time>', 'only calls before a time', moment)
    .option('--limit <number>', 'the maximum number of calls', numberUpTo(1_000_000_000), 50)
    .addOption(new Option('-f, --follow', 'continue with new calls (stop it with Ctrl-C)').conflicts('until'))
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption('print JSON, newest first; with --follow, an object per line, newest last'))
    .addHelpText('after', help)
    .action(async (flags) => (await import('./actions.ts')).calls(flags));
}
