import type { Command } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { jsonOption, projectOption, urlOption, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard secret set GITHUB_TOKEN                    (asks for the value, which is not shown)
  pass show github | switchboard secret set GITHUB_TOKEN
  switchboard secret set GITHUB_TOKEN --from-env GH_TOKEN
  switchboard secret set CERTIFICATE --from-file client.pem

Servers refer to a secret as \${NAME} in their command, arguments, env, endpoint and headers. Nobody can read it
again. A line break at the end of what is piped in, or of a file, does not belong to the value.
"rm" asks first on a terminal. In scripts it does not, but wants --yes where servers use the secret.`;

export function addSecretCommands(program: Command, setExitCode: SetExitCode): void {
  const secret = program
    .command('secret')
    .alias('secrets')
    .description('keep what servers need and nobody should see')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  secret
    .command('ls')
    .description('list the names of the secrets, and who uses them')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).listSecrets(flags));

  secret
    .command('set')
    .description('set a secret: asks for its value, or takes what is piped in')
    .argument('<name>')
    .allowExcessArguments()
    .option('--from-env <variable>', 'take the value of this environment variable')
    .option('--from-file <file>', 'take the contents of this file')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name: string, flags, command: Command) =>
      (await load()).setSecret(name, command.args.slice(1), flags),
    );

  secret
    .command('rm')
    .description('remove a secret')
    .argument('<name>')
    .addOption(projectOption())
    .addOption(yesOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name, flags) => setExitCode(await (await load()).removeSecret(name, flags)));

  secret
    .command('rotate')
    .description('seal the secrets of all projects again, with a new key')
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).rotateSecrets(flags));
}
