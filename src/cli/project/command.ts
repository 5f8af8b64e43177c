import type { Command } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { apiCommand, daysOrNever, namesOption, onOrOff, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard project add research --description "The research team"
  switchboard project set research --record-payloads on --retention-days 90
  switchboard project set research --names as-is
  switchboard project rm research

Each project has its own servers, secrets, tool switches and records; clients reach it at /mcp/<project>.
The project "default" always exists. "rm" asks for confirmation; in scripts it needs --yes.`;

export function addProjectCommands(program: Command, setExitCode: SetExitCode): void {
  const project = program
    .command('project')
    .description('list, add, change and remove projects')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(project, 'ls', 'list the projects').action(async (flags) => (await load()).listProjects(flags));

  apiCommand(project, 'show', 'show a project')
    .argument('<project>', 'id or name')
    .action(async (name, flags) => (await load()).showProject(name, flags));

  const add = apiCommand(project, 'add <name>', 'add a project').action(async (name, flags) =>
    (await load()).addProject(name, flags),
  );
  const set = apiCommand(project, 'set', 'change a project')
    .argument('<project>', 'id or name')
    .option('--name <name>', 'its new name')
    .action(async (name, flags) => (await load()).changeProject(name, flags));
  for (const command of [add, set]) {
    command
      .option('--description <text>', 'what it is for; empty removes it')
      .option('--record-payloads <switch>', 'record arguments and results of calls: on or off', onOrOff)
      .option('--retention-days <days>', 'delete records after this many days, or never', daysOrNever)
      .addOption(namesOption());
  }

  apiCommand(project, 'rm', 'remove a project and everything in it', [yesOption()])
    .argument('<project>', 'id or name')
    .action(async (name, flags) => setExitCode(await (await load()).removeProject(name, flags)));
}
