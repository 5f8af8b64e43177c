import { type Command, Option } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { anyProjectOption, apiCommand, numberUpTo, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard limit set --per-minute 600
  switchboard limit set --per-minute 60 --concurrent 4 --for ci
  switchboard limit set --concurrent 2 --tool 'search/*' -P research --shared

A limit counts for each key by itself, or with --shared for all together. A request over it gets "429 Too Many
Requests". If several limits apply, each of them counts.`;

/** The API's maximum. */
const amount = numberUpTo(1_000_000_000);

export function addLimitCommands(program: Command, setExitCode: SetExitCode): void {
  const limit = program
    .command('limit')
    .alias('limits')
    .description('list, set and remove limits: how much may be used')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(limit, 'ls', 'list the limits', [anyProjectOption()]).action(async (flags) =>
    (await load()).listLimits(flags),
  );
  apiCommand(limit, 'set', 'set a limit', [
    new Option('--per-minute <number>', 'how many requests per minute').argParser(amount),
    new Option('--concurrent <number>', 'how many calls at a time').argParser(amount),
    new Option('--for <principal>', 'only for this key: its name, project/name, or id'),
    new Option('-P, --project <project>', 'only in this project (its id or name)'),
    new Option('--tool <server/tool>', 'only calls of these tools; * matches any text'),
    new Option('--shared', 'one count for all together'),
  ]).action(async (flags) => (await load()).setLimit(flags));
  apiCommand(limit, 'rm', 'remove a limit', [yesOption()])
    .argument('<id>', 'its id, as `switchboard limit ls` shows it')
    .action(async (id, flags) => setExitCode(await (await load()).removeLimit(id, flags)));
}
