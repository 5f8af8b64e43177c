import { type Command, Option } from 'commander';
import { roles } from '../../identity/roles.ts';
import type { SetExitCode } from '../defaults.ts';
import { anyProjectOption, apiCommand, yesOption } from '../options.ts';
import { duration, expiry } from '../times.ts';

const help = `
Examples:
  switchboard key add ci --project research --role caller
  switchboard key add ci --project research --role caller > ci.key      (the key, and nothing else)
  switchboard key ls -P research
  switchboard key rotate ci --overlap 24h
  switchboard key revoke ci

A program sends its key with each request: "Authorization: Bearer <key>". Commands take it from SWITCHBOARD_KEY.
A key is shown once, when it is made: Switchboard keeps only its hash. If a name is not unique, write project/name.
"revoke" asks for confirmation on a terminal, and not in scripts.`;

const KEY = 'its name, project/name, or id, also the public one (sbk_…)';
const OVERLAP = '24h';
const LIFETIME = '90d';

export function addKeyCommands(program: Command, setExitCode: SetExitCode): void {
  const key = program
    .command('key')
    .alias('keys')
    .description('make, list, rotate and revoke the keys of programs')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(key, 'add <name>', 'make a key, and print it: this once', [
    new Option('-P, --project <project>', 'the project that it is for (default: all projects)'),
    new Option('--role <role>', 'what it may do; see: switchboard role table')
      .choices(roles)
      .makeOptionMandatory(),
    expiresOption(`when it expires: a time from now, a date, or never (default: ${LIFETIME})`),
  ]).action(async (name, flags) =>
    (await load()).addKey(name, {
      ...flags,
      expires: flags.expires === undefined ? expiry(LIFETIME) : flags.expires,
    }),
  );
  apiCommand(key, 'ls', 'list the keys', [anyProjectOption()]).action(async (flags) =>
    (await load()).listKeys(flags),
  );
  apiCommand(key, 'show', 'show a key')
    .argument('<key>', KEY)
    .action(async (name, flags) => (await load()).showKey(name, flags));
  apiCommand(key, 'rotate', 'make a new key in place of the present one, and print it: this once', [
    new Option('--overlap <duration>', 'how long the present one still works')
      .argParser(duration)
      .default(duration(OVERLAP), OVERLAP),
    expiresOption('when the key expires now (default: as before)'),
  ])
    .argument('<key>', KEY)
    .action(async (name, flags) => (await load()).rotateKey(name, flags));
  apiCommand(key, 'revoke', 'revoke a key at once, with its roles', [yesOption()])
    .alias('rm')
    .argument('<key>', KEY)
    .action(async (name, flags) => setExitCode(await (await load()).revokeKey(name, flags)));
  apiCommand(key, 'set', 'change a key', [
    new Option('--name <name>', 'its new name'),
    expiresOption('when it expires: a time from now, a date, or never'),
  ])
    .argument('<key>', KEY)
    .action(async (name, flags) => (await load()).changeKey(name, flags));
}

function expiresOption(description: string): Option {
  return new Option('--expires <when>', description).argParser(expiry);
}
