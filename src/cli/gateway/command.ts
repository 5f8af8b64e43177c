import { type Command, Option } from 'commander';
import { startups } from '../../config/choices.ts';
import { DEFAULT_PORT } from '../defaults.ts';
import { anyProjectOption, jsonOption, port, seconds, urlOption } from '../options.ts';

export function addGatewayCommands(program: Command): void {
  program
    .command('up')
    .description('run the gateway (stop it with Ctrl-C)')
    .option(
      '-c, --config <file>',
      'configuration with mcpServers (default: mcp.json, .mcp.json, ~/.switchboard/mcp.json)',
    )
    .option('--host <address>', 'address to listen on: 127.0.0.1, ::1 or localhost', '127.0.0.1')
    .option('-p, --port <number>', 'port to listen on; 0 takes a free one', port, DEFAULT_PORT)
    .addOption(
      new Option('--startup <how>', 'how servers start, instead of the setting in the file').choices(
        startups,
      ),
    )
    .addOption(
      new Option(
        '--on-start-failure <what>',
        'what to do if a server fails to start with Switchboard, instead of the setting in the file',
      ).choices(['continue', 'abort']),
    )
    .option('--no-database', 'run without a database: only the configuration file, and nothing is stored')
    .addOption(
      new Option('--exit-when-idle <seconds>', 'stop after this long without a client').argParser(seconds),
    )
    .addOption(jsonOption('print events as lines of JSON'))
    .action(async (flags) => (await import('./up.ts')).up(flags));

  program
    .command('stdio')
    .description(
      'an MCP server on stdin and stdout, for clients that cannot use a URL; starts Switchboard if none runs',
    )
    .option(
      '-c, --config <file>',
      'configuration to start Switchboard with; a running Switchboard must use the same file',
    )
    .addOption(urlOption())
    .addOption(anyProjectOption())
    .action(async (flags) => {
      const [{ bridge }, { switchboardAt }] = await Promise.all([
        import('../../gateway/stdio/bridge.ts'),
        import('./running.ts'),
      ]);
      await bridge(switchboardAt(flags));
    });

  program
    .command('token')
    .description('print the token for programs of other users; the commands send it automatically')
    .action(async () => (await import('../access.ts')).printToken());
}
