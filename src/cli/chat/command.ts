import type { Command } from 'commander';
import { jsonOption, urlOption, wholeNumber } from '../options.ts';

const help = `
Examples:
  switchboard chat research
  switchboard chat research What is new in our repositories?
  git diff | switchboard chat research --system 'Review what you are given.' --tool 'github__*'

The model is Claude, and its API key is the secret ANTHROPIC_API_KEY of the project:
  switchboard secret set ANTHROPIC_API_KEY --project research

What the model says goes to stdout, and the tools that it calls to stderr.`;

export function addChatCommand(program: Command): void {
  program
    .command('chat')
    .description('ask a model that uses the tools of a project; without a message, one after the other')
    .argument('<project>', 'id or name of the project')
    .argument('[message...]', 'what to ask; without it what is piped in, or what you type')
    .option('-m, --model <name>', 'the model (default: what the setting `chat.model` says)')
    .option('--system <text>', 'how the model is to behave')
    .option(
      '--tool <name>',
      'a tool that it may use, or a pattern with *; say it for each (default: all)',
      some,
    )
    .option('--max-steps <number>', 'how many turns the model may have', wholeNumber)
    .option('--max-tokens <number>', 'how long each turn may be', wholeNumber)
    .option('--api-key-secret <name>', 'the secret with the API key of the model')
    .addOption(urlOption())
    .addOption(jsonOption('print the whole answer as JSON'))
    .addHelpText('after', help)
    .action(async (project, words, flags) => (await import('./actions.ts')).chat(project, words, flags));
}

function some(text: string, before: string[] = []): string[] {
  return [...before, text];
}
