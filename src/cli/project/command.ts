import type { Command } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { daysOrNever, jsonOption, namesOption, onOrOff, urlOption, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard project add research --description "The research team"
  switchboard project set research --record-payloads on --retention-days 90
  switchboard project set research --names as-is
  switchboard project rm research

A project has servers, secrets, tool switches and records of its own; clients reach it at /mcp/<project>.
The project "default" is always there. "rm" asks first; where nobody can be asked it needs --yes.`;

export function addProjectCommands(program: Command, setExitCode: SetExitCode): void {
  const project = program
    .command('project')
    .description('list, add, change and remove projects')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  project
    .command('ls')
    .description('list the projects')
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).listProjects(flags));

  project
    .command('show')
    .description('show a project')
    .argument('<project>', 'id or name')
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name, flags) => (await load()).showProject(name, flags));

  const add = project
    .command('add')
    .description('add a project')
    .argument('<name>')
    .action(async (name, flags) => (await load()).addProject(name, flags));
  const set = project
    .command('set')
    .description('change a project')
    .argument('<project>', 'id or name')
    .option('--name <name>', 'its new name')
    .action(async (name, flags) => (await load()).changeProject(name, flags));
  for (const command of [add, set]) {
    command
      .option('--description <text>', 'what it is for; empty for none')
      .option(
        '--record-payloads <switch>',
        'keep arguments and results of calls in their records: on or off',
        onOrOff,
      )
      .option('--retention-days <days>', 'after how many days records are removed; or never', daysOrNever)
      .addOption(namesOption())
      .addOption(urlOption())
      .addOption(jsonOption());
  }

  project
    .command('rm')
    .description('remove a project with everything in it')
    .argument('<project>', 'id or name')
    .addOption(yesOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name, flags) => setExitCode(await (await load()).removeProject(name, flags)));
}
