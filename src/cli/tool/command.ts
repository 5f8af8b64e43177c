import type { Command } from 'commander';
import { jsonOption, projectOption, urlOption } from '../options.ts';

const help = `
Examples:
  switchboard tool ls --all
  switchboard tool disable github__delete_repository
  switchboard tool disable 'github__delete_*'

A tool that is off is neither listed to clients nor called for them.`;

export function addToolCommands(program: Command): void {
  const tool = program
    .command('tool')
    .description('list the tools of a project, and switch them on and off')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  tool
    .command('ls')
    .description('list the tools')
    .option('--all', 'those too that are off')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).listTools(flags));

  for (const [word, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const) {
    tool
      .command(word)
      .description(`switch a tool, or all that fit a pattern, ${enabled ? 'on' : 'off'}`)
      .argument(
        '<tool>',
        'its name, as `switchboard tool ls` shows it, or server__tool; * stands for anything, for all that fit now',
      )
      .addOption(projectOption())
      .addOption(urlOption())
      .addOption(jsonOption())
      .action(async (name, flags) => (await load()).switchTool(name, enabled, flags));
  }
}
