import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { SwitchboardError } from '../errors.ts';
import { identity } from '../identity.ts';
import { exitCodeOf, exitCodes, RpcFailure, UnreachableError } from './exit.ts';
import { complain, print } from './output.ts';
import { DEFAULT_PORT, DEFAULT_URL, listable } from './words.ts';

const exitHelp = `
Exit codes: 0 done; 1 it failed (a tool or a server said error); 2 the command or a configuration file is wrong;
3 there is no Switchboard at the address.`;

/** Carries out a command line and gives the exit code. */
export async function run(words: string[]): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const asJson = words.includes('--json');
  const program = commands(asJson, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(words, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      report(error, asJson);
      return exitCodeOf(error);
    }
    if (error.exitCode === 0) return exitCodes.ok;
    // As text it has been said already.
    if (asJson) printError({ code: 'usage', message: error.message.replace(/^error: /, '') });
    return exitCodes.usage;
  }
}

/** Each command loads its own parts when it is used: `up` needs no client, `check` no gateway. */
function commands(asJson: boolean, setExitCode: (code: number) => void): Command {
  const program = new Command('switchboard')
    .description('One MCP endpoint for all of your MCP servers.')
    .version(identity().version)
    .exitOverride()
    .configureOutput(asJson ? { writeErr() {} } : {})
    .showHelpAfterError('(switchboard --help shows how)')
    .addHelpText('after', exitHelp);

  program
    .command('up')
    .description('run the gateway (stop it with Ctrl-C)')
    .option(
      '-c, --config <file>',
      'configuration with mcpServers (default: mcp.json, .mcp.json, ~/.switchboard/mcp.json)',
    )
    .option('--host <address>', 'address to listen on', '127.0.0.1')
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
    .addOption(
      new Option('--exit-when-idle <seconds>', 'stop when no client has been there for so long').argParser(
        seconds,
      ),
    )
    .option('--json', 'print events as lines of JSON')
    .action(async (flags) => (await import('./up.ts')).up(flags));

  program
    .command('stdio')
    .description(
      'an MCP server on stdin and stdout, for clients that cannot use a URL; starts Switchboard when there is none',
    )
    .option('-c, --config <file>', 'configuration to start with when there is no Switchboard yet')
    .option('--url <url>', 'the running Switchboard', baseUrl, DEFAULT_URL)
    .action(async (flags) => (await import('./bridge.ts')).bridge(flags));

  program
    .command('ls')
    .description('list what there is')
    .addArgument(new Argument('[what]', 'what to list').choices(listable).default('servers'))
    .option('--url <url>', 'the running Switchboard', baseUrl, DEFAULT_URL)
    .option('-c, --config <file>', 'use this configuration instead of a running Switchboard')
    .option('--json', 'print JSON')
    .action(async (what, flags) => (await import('./ls.ts')).ls(what, flags));

  program
    .command('watch')
    .description('show the state of servers, and every change as it happens (stop it with Ctrl-C)')
    .argument('[server...]', 'only these; all where none is named')
    .option('--url <url>', 'the running Switchboard', baseUrl, DEFAULT_URL)
    .option(
      '--json',
      'print a JSON object on a line for each; `from` is null for how a server stands at first',
    )
    .action(async (names, flags) => setExitCode(await (await import('./watch.ts')).watch(names, flags)));

  program
    .command('call')
    .description('call a tool')
    .argument('<tool>', 'its name, as `switchboard ls tools` shows it, or server__tool')
    .argument('[arguments...]', 'one JSON object, or key=value words')
    .option('--url <url>', 'the running Switchboard', baseUrl, DEFAULT_URL)
    .option('-c, --config <file>', 'use this configuration instead of a running Switchboard')
    .option('--json', 'print the whole result as JSON')
    .action(async (tool, words, flags) =>
      setExitCode(await (await import('./call.ts')).call(tool, words, flags)),
    );

  program
    .command('logs')
    .description("show the last lines of a server's log")
    .argument('<server>')
    .option('--url <url>', 'the running Switchboard', baseUrl, DEFAULT_URL)
    .option('--json', 'print JSON')
    .action(async (server, flags) => (await import('./logs.ts')).logs(server, flags));

  program
    .command('import')
    .description('add the servers of a Claude Desktop, Cursor or VS Code file to a configuration')
    .argument('<file>')
    .option('-c, --config <file>', 'the configuration to add them to', 'mcp.json')
    .option('--force', 'replace servers of the same name')
    .option('--json', 'print JSON')
    .action(async (file, flags) => (await import('./import.ts')).importServers(file, flags));

  program
    .command('check')
    .description('check a configuration file')
    .argument('<config>')
    .option('--json', 'print JSON')
    .action(async (file, flags) => (await import('./check.ts')).check(file, flags));

  for (const command of program.commands) command.addHelpText('after', exitHelp);
  return program;
}

function report(error: unknown, asJson: boolean): void {
  const message = error instanceof Error ? error.message : String(error);
  if (!asJson) {
    complain(`error: ${message}`);
    return;
  }
  const code =
    error instanceof SwitchboardError
      ? error.code
      : error instanceof UnreachableError
        ? 'unreachable'
        : 'failed';
  const rpc = error instanceof RpcFailure ? { rpc: error.rpc } : {};
  printError({ code, message, ...rpc });
}

/** On one line: some commands print a line of JSON for each thing that happens, and this is the last one. */
function printError(error: object): void {
  print(JSON.stringify({ error }));
}

/** The address as people have it at hand: with or without the path of the endpoint. */
function baseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError('An address looks like http://127.0.0.1:7400.');
  }
  return url.origin;
}

function port(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('A port is a number from 0 to 65535.');
  }
  return number;
}

function seconds(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new InvalidArgumentError('Seconds are a number above 0.');
  return number;
}
