import type { Command } from 'commander';
import { apiCommand, projectOption } from '../options.ts';

const help = `
Examples:
  switchboard tool ls --all
  switchboard tool disable github__delete_repository
  switchboard tool disable 'github__delete_*'

Clients can neither see nor call a disabled tool.`;

export function addToolCommands(program: Command): void {
  const tool = program
    .command('tool')
    .description('list, enable and disable the tools of a project')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(tool, 'ls', 'list the tools', [projectOption()])
    .option('--all', 'include disabled tools')
    .action(async (flags) => (await load()).listTools(flags));

  for (const [word, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const) {
    apiCommand(tool, word, `${word} a tool, or all tools that match a pattern`, [projectOption()])
      .argument(
        '<tool>',
        'its name, as `switchboard tool ls` shows it, or server__tool; * matches any text; tools added later are not affected',
      )
      .action(async (name, flags) => (await load()).switchTool(name, enabled, flags));
  }
}
