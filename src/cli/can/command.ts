import { type Command, Option } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { apiCommand } from '../options.ts';

const help = `
Examples:
  switchboard can ci call github__delete_repository -P research
  switchboard can ci see resource:file:///secret/plan.txt
  switchboard can ci call 'resource:file:///logs/{day}'
  switchboard can ci operate -P research

The answer is the decision that a request of it gets now. The exit code is 0 for yes and 1 for no. Actions other than
"call" and "see" are those of: switchboard role table`;

export function addCanCommand(program: Command, setExitCode: SetExitCode): void {
  apiCommand(program, 'can', 'say whether somebody may do something, and why', [
    new Option('-P, --project <project>', 'id or name of the project (default: all projects)'),
    new Option('--server <name>', 'the server, if its own name for the item is given'),
  ])
    .argument('<principal>', 'a key: its name, project/name, or id, also the public one (sbk_…)')
    .argument('<action>', 'call, see, or another action of the role table')
    .argument(
      '[name]',
      'what to call or see: a name as clients see it, a URI or a URI template; prefix prompt: for prompts',
    )
    .addHelpText('after', help)
    .action(async (principal, action, name, flags) =>
      setExitCode(await (await import('./actions.ts')).can(principal, action, name, flags)),
    );
}
