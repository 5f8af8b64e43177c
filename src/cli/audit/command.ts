import { type Command, Option } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { anyProjectOption, apiCommand, numberUpTo } from '../options.ts';
import { moment } from '../times.ts';

const help = `
Examples:
  switchboard audit --since 7d
  switchboard audit -P research --action key
  switchboard audit --outcome denied --principal ci -f
  switchboard audit --since 30d --json > audit.jsonl      (all of them)
  switchboard audit --verify

The log has who changed what, and what was denied. Each entry has the hash of the one before it, so that none can be
changed or removed unnoticed: "--verify" checks that, and exits with 1 if it finds otherwise. Keep the hash of the head
elsewhere to notice if the end was cut off.`;

export function addAuditCommand(program: Command, setExitCode: SetExitCode): void {
  apiCommand(
    program,
    'audit',
    'show the audit log, newest last',
    [
      anyProjectOption(),
      new Option('--principal <principal>', 'only what this key or person did: its id or name, or local'),
      new Option(
        '--action <action>',
        'only this action, such as key.create, or those of a noun, such as key',
      ),
      new Option('--outcome <outcome>', 'only entries with this outcome').choices([
        'done',
        'denied',
        'refused',
      ]),
      new Option('--since <time>', 'only since a time, or an age such as 90s, 15m, 2h, 7d').argParser(moment),
      new Option('--until <time>', 'only before a time').argParser(moment),
      new Option(
        '-n, --limit <number>',
        'the maximum number of entries (default: 50; with --json, all without -f)',
      ).argParser(numberUpTo(1_000_000_000)),
      new Option('-f, --follow', 'continue with new entries (stop it with Ctrl-C)').conflicts('until'),
      new Option('--verify', 'check that no entry was changed or removed').conflicts(['follow', 'since']),
    ],
    'print an object per line, newest last',
  )
    .addHelpText('after', help)
    .action(async (flags) => {
      const { audit, verify } = await import('./actions.ts');
      if (flags.verify) setExitCode(await verify(flags));
      else await audit(flags);
    });
}
