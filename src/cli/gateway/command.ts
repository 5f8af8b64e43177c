import { type Command, Option } from 'commander';
import { DEFAULT_PORT } from '../defaults.ts';
import { anyProjectOption, jsonOption, port, seconds, urlOption } from '../options.ts';

/** Commands that are the gateway, or stand in for it. */
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
      new Option('--startup <how>', 'how servers start, whatever the file says').choices([
        'lazy',
        'sequential',
        'parallel',
      ]),
    )
    .addOption(
      new Option(
        '--on-start-failure <what>',
        'what to do when a server fails that starts with Switchboard, whatever the file says',
      ).choices(['continue', 'abort']),
    )
    .option('--no-database', 'run without one: only what the configuration says, and nothing is kept')
    .addOption(
      new Option('--exit-when-idle <seconds>', 'stop when no client has been there for so long').argParser(
        seconds,
      ),
    )
    .addOption(jsonOption('print events as lines of JSON'))
    .action(async (flags) => (await import('./up.ts')).up(flags));

  program
    .command('stdio')
    .description(
      'an MCP server on stdin and stdout, for clients that cannot use a URL; starts Switchboard when there is none',
    )
    .option(
      '-c, --config <file>',
      'configuration to start with when there is no Switchboard yet; one that runs has to run with it',
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
    .description('print the token that lets programs of other users in; the commands send it by themselves')
    .action(async () => (await import('./token.ts')).token());
}
