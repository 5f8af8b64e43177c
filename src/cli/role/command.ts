import { Argument, type Command, Option } from 'commander';
import { roles } from '../../identity/roles.ts';
import { anyProjectOption, apiCommand } from '../options.ts';

const help = `
Examples:
  switchboard role table
  switchboard role grant operator ci -P research
  switchboard role grant viewer group:builders
  switchboard role revoke operator ci -P research

A role counts in one project, or without -P in all projects, which needs an administrator. Whoever has several roles in a
project has the most powerful of them. Nobody grants a role above their own.`;

export function addRoleCommands(program: Command): void {
  const role = program
    .command('role')
    .alias('roles')
    .description('list, grant and revoke roles')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');
  const named = () => new Argument('<role>', 'the role').choices(roles);
  const holder = 'a key (its name, project/name, or id), or group:NAME';
  const place = () =>
    new Option('-P, --project <project>', 'id or name of the project (default: all projects)');

  apiCommand(role, 'ls', 'list who has which role', [anyProjectOption()]).action(async (flags) =>
    (await load()).listGrants(flags),
  );
  apiCommand(role, 'grant', 'give somebody a role, instead of the one that they have there', [place()])
    .addArgument(named())
    .argument('<principal>', holder)
    .action(async (name, to, flags) => (await load()).grantRole(name, to, flags));
  apiCommand(role, 'revoke', 'take a role from somebody', [place()])
    .addArgument(named())
    .argument('<principal>', holder)
    .action(async (name, from, flags) => (await load()).revokeRole(name, from, flags));
  apiCommand(role, 'table', 'show what each role may do').action(async (flags) =>
    (await load()).showTable(flags),
  );
}
