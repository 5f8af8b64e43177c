import type { Command } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { apiCommand, projectOption, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard secret set GITHUB_TOKEN                    (asks for the value, which is not shown)
  pass show github | switchboard secret set GITHUB_TOKEN
  switchboard secret set GITHUB_TOKEN --from-env GH_TOKEN
  switchboard secret set CERTIFICATE --from-file client.pem

Servers refer to a secret as \${NAME} in their command, arguments, env, endpoint and headers. Its value cannot be
read again. A line break at the end of the input or the file is not part of the value.
"rm" asks for confirmation on a terminal. In scripts it needs --yes only if servers use the secret.`;

export function addSecretCommands(program: Command, setExitCode: SetExitCode): void {
  const secret = program
    .command('secret')
    .alias('secrets')
    .description('manage the secrets of a project')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(secret, 'ls', 'list the names of the secrets, and the servers that use them', [
    projectOption(),
  ]).action(async (flags) => (await load()).listSecrets(flags));

  apiCommand(secret, 'set <name>', 'set a secret: asks for its value, or reads it from stdin', [
    projectOption(),
  ])
    .allowExcessArguments()
    .option('--from-env <variable>', 'use the value of this environment variable')
    .option('--from-file <file>', 'use the contents of this file')
    .action(async (name: string, flags, command: Command) =>
      (await load()).setSecret(name, command.args.slice(1), flags),
    );

  apiCommand(secret, 'rm <name>', 'remove a secret', [projectOption(), yesOption()]).action(
    async (name, flags) => setExitCode(await (await load()).removeSecret(name, flags)),
  );

  apiCommand(secret, 'rotate', 'encrypt the secrets of all projects with a new key').action(async (flags) =>
    (await load()).rotateSecrets(flags),
  );
}
