import { type Command, Option } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { anyProjectOption, apiCommand, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard rule deny 'tool:github/delete_*' --for role:caller -P research
  switchboard rule deny 'tool:*' --destructive
  switchboard rule allow 'tool:github/create_issue' --for ci
  switchboard rule deny 'resource:files/file:///secret/*'

A rule is about [kind:]server/name: the kind is tool, prompt or resource, the name is the server's own, or a URI, and *
matches any text. Of the rules that match, the most specific one decides: first by whom it is for, then by name and
server; of equal ones, a denial does. What a rule for all projects denies, no rule of one project allows. Without a rule,
the role decides. See the result with: switchboard can`;

export function addRuleCommands(program: Command, setExitCode: SetExitCode): void {
  const rule = program
    .command('rule')
    .alias('rules')
    .description('list, add and remove rules: which tools, prompts and resources may be used')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(rule, 'ls', 'list the rules', [anyProjectOption()]).action(async (flags) =>
    (await load()).listRules(flags),
  );
  for (const effect of ['allow', 'deny'] as const) {
    apiCommand(rule, effect, `${effect} the use of tools, prompts or resources`, conditions())
      .argument('<what>', '[kind:]server/name, with * for any text; * alone is everything')
      .action(async (what, flags) => (await load()).addRule(effect, what, flags));
  }
  apiCommand(rule, 'rm', 'remove a rule', [yesOption()])
    .argument('<id>', 'its id, as `switchboard rule ls` shows it')
    .action(async (id, flags) => setExitCode(await (await load()).removeRule(id, flags)));
}

function conditions(): Option[] {
  return [
    new Option('--for <whom>', 'everyone, role:ROLE, group:NAME, or a key').default('everyone'),
    new Option('-P, --project <project>', 'id or name of the project (default: all projects)'),
    new Option('--read-only', 'only tools that say they change nothing'),
    new Option('--not-read-only', 'only tools that do not say so').conflicts('readOnly'),
    new Option('--destructive', 'only tools that may destroy something, or do not say'),
    new Option('--not-destructive', 'only tools that say they destroy nothing').conflicts('destructive'),
  ];
}
