import type { Command } from 'commander';
import { jsonOption, urlOption } from '../options.ts';
import { DEFAULT_CONFIG } from '../words.ts';

const importHelp = `
Examples:
  switchboard import ~/.cursor/mcp.json
  switchboard import server.json --project research
  switchboard import - --project research < servers.json`;

/** Commands on configuration files. */
export function addFileCommands(program: Command): void {
  program
    .command('import')
    .description('add the servers of a Claude Desktop, Cursor, VS Code or registry file to a configuration')
    .argument('<file>', 'the file; - reads stdin')
    .option('-c, --config <file>', `the configuration to add them to (default: ${DEFAULT_CONFIG})`)
    .option('-P, --project <project>', 'add them to this project of the running Switchboard instead')
    .addOption(urlOption())
    .option('--force', 'replace servers of the same name')
    .addOption(jsonOption())
    .action(async (file, flags) => (await import('../import.ts')).importServers(file, flags))
    .addHelpText('after', importHelp);

  program
    .command('check')
    .description('check a configuration file')
    .argument('<config>')
    .addOption(jsonOption())
    .action(async (file, flags) => (await import('../check.ts')).check(file, flags));
}
