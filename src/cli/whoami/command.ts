import type { Command } from 'commander';
import { apiCommand } from '../options.ts';

const help = `
Commands are the local user if they run as the user of Switchboard, on its machine. Elsewhere they are the key in the
environment variable SWITCHBOARD_KEY, which comes first.`;

export function addWhoamiCommand(program: Command): void {
  apiCommand(program, 'whoami', 'show who you are for a Switchboard, and your roles')
    .addHelpText('after', help)
    .action(async (flags) => (await import('./actions.ts')).whoami(flags));
}
