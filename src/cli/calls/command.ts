import { type Command, Option } from 'commander';
import { jsonOption, moment, projectOption, urlOption, wholeNumber } from '../options.ts';

const help = `
Examples:
  switchboard calls --status error --since 1h
  switchboard calls --server github --follow
  switchboard calls --tool search --limit 1000 --json`;

export function addCallsCommand(program: Command): void {
  program
    .command('calls')
    .description('show the calls of a project, the newest last')
    .option('--server <name>', 'only calls to this server')
    .option('--tool <name>', 'only calls of this tool')
    .addOption(
      new Option('--status <status>', 'only calls that ended so').choices([
        'ok',
        'tool_error',
        'error',
        'timeout',
        'cancelled',
      ]),
    )
    .option('--since <time>', 'only later ones: a time, or 90s, 15m, 2h, 7d for so long ago', moment)
    .option('--until <time>', 'only earlier ones', moment)
    .option('--limit <number>', 'how many at most', wholeNumber, 50)
    .addOption(
      new Option('-f, --follow', 'go on with new ones as they come (stop it with Ctrl-C)').conflicts('until'),
    )
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption('print JSON, the newest first; with --follow a line for each, the newest last'))
    .addHelpText('after', help)
    .action(async (flags) => (await import('./actions.ts')).calls(flags));
}
