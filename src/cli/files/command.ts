import type { Command } from 'commander';
import { DEFAULT_CONFIG, DEFAULT_PROJECT, type SetExitCode } from '../defaults.ts';
import { jsonOption, urlOption } from '../options.ts';

const importHelp = `
Examples:
  switchboard import ~/.cursor/mcp.json
  switchboard import ~/.claude.json --folder ~/work/site
  switchboard import ~/.codex/config.toml
  switchboard import server.json --project research
  switchboard import - --project research < servers.json`;

export function addFileCommands(program: Command, setExitCode: SetExitCode): void {
  program
    .command('import')
    .description(
      'add the servers of another program (Claude, Codex, Cursor, VS Code, Windsurf, Zed, …) or of a registry file to a configuration',
    )
    .argument('<file>', 'the file; - reads stdin')
    .option('-c, --config <file>', `the configuration to add them to (default: ${DEFAULT_CONFIG})`)
    .option(
      '-P, --project <project>',
      `add them to this project of the running Switchboard instead (with --url: ${DEFAULT_PROJECT})`,
    )
    .addOption(urlOption())
    .option(
      '--folder <folder>',
      'for ~/.claude.json: include the servers of the project in this folder (default: the current one)',
    )
    .option('--force', 'replace servers of the same name')
    .addOption(jsonOption())
    .action(async (file, flags, command: Command) => {
      const isAddressed = command.getOptionValueSource('url') === 'cli';
      return (await import('./import.ts')).importServers(file, { ...flags, isAddressed });
    })
    .addHelpText('after', importHelp);

  program
    .command('check')
    .description(
      'check a configuration file, and whether its servers can start here: commands, folders, variables',
    )
    .argument('<config>')
    .addOption(jsonOption())
    .action(async (file, flags) => setExitCode(await (await import('./check.ts')).check(file, flags)));
}
