import type { Command } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { apiCommand, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard group add builders --description "Our build machines"
  switchboard group join builders ci
  switchboard role grant caller group:builders -P research

Whoever is in a group has its roles too, and its rules apply to them. Groups belong to no project.`;

const principal = 'a key: its name, project/name, or id';

export function addGroupCommands(program: Command, setExitCode: SetExitCode): void {
  const group = program
    .command('group')
    .alias('groups')
    .description('list, add and remove groups, and their members')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(group, 'ls', 'list the groups with their members').action(async (flags) =>
    (await load()).listGroups(flags),
  );
  apiCommand(group, 'add <name>', 'add a group')
    .option('--description <text>', 'what it is for')
    .action(async (name, flags) => (await load()).addGroup(name, flags));
  apiCommand(group, 'rm', 'remove a group, with its roles and rules', [yesOption()])
    .argument('<group>', 'its name or id')
    .action(async (name, flags) => setExitCode(await (await load()).removeGroup(name, flags)));
  apiCommand(group, 'join', 'put somebody into a group')
    .argument('<group>', 'its name or id')
    .argument('<principal>', principal)
    .action(async (name, member, flags) => (await load()).joinGroup(name, member, flags));
  apiCommand(group, 'leave', 'take somebody out of a group')
    .argument('<group>', 'its name or id')
    .argument('<principal>', principal)
    .action(async (name, member, flags) => (await load()).leaveGroup(name, member, flags));
}
