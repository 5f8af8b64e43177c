import { type Command, Option } from 'commander';
import { startups } from '../../config/choices.ts';
import { DEFAULT_PORT } from '../defaults.ts';
import {
  addressRange,
  anyProjectOption,
  jsonOption,
  port,
  publicUrl,
  seconds,
  urlOption,
} from '../options.ts';

const upHelp = `
Examples:
  switchboard up
  switchboard up --auth
  switchboard up --host 0.0.0.0 --port 443 --public-url https://sb.example --tls-cert cert.pem --tls-key key.pem
  switchboard up --public-url https://sb.example --trusted-proxy 127.0.0.1

Without --auth and --public-url, Switchboard listens on this machine only, and lets its own user in. With either, every
request needs a key, which "switchboard key add" makes. Commands of its own user on this machine need none.
The same settings can be in the configuration file: auth, publicUrl, tls, trustedProxies.`;

const stdioHelp = `
A Switchboard on another machine, with a key of it:
  SWITCHBOARD_KEY=… switchboard stdio --url https://sb.example`;

export function addGatewayCommands(program: Command): void {
  addUp(program);

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
    .addHelpText('after', stdioHelp)
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

function addUp(program: Command): void {
  program
    .command('up')
    .description('run the gateway (stop it with Ctrl-C)')
    .option(
      '-c, --config <file>',
      'configuration with mcpServers (default: mcp.json, .mcp.json, ~/.switchboard/mcp.json)',
    )
    .option(
      '--host <address>',
      'address to listen on; any other than 127.0.0.1, ::1 and localhost needs --public-url',
      '127.0.0.1',
    )
    .option('-p, --port <number>', 'port to listen on; 0 takes a free one', port, DEFAULT_PORT)
    .option('--auth', 'require a key for every request, from this machine too')
    .option('--public-url <url>', 'the address that clients use; requires a key for every request', publicUrl)
    .option('--tls-cert <file>', 'serve HTTPS with this certificate (PEM, with its chain)')
    .option('--tls-key <file>', 'the key of the certificate (PEM)')
    .option(
      '--trusted-proxy <address>',
      'a proxy in front, or a range of them, whose X-Forwarded-For is believed (repeatable)',
      addressRange,
    )
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
    .addHelpText('after', upHelp)
    .action(async (flags) => (await import('./up.ts')).up(flags));
}
