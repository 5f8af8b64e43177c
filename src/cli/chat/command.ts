import type { Command } from 'commander';
import { apiCommand, list, wholeNumber } from '../options.ts';

const help = `
Examples:
  switchboard chat research
  switchboard chat research What is new in our repositories?
  git diff | switchboard chat research --system 'Review what you are given.' --tool 'github__*'

The model is Claude, and its API key is the secret ANTHROPIC_API_KEY of the project:
  switchboard secret set ANTHROPIC_API_KEY --project research

The text of the model goes to stdout, its tool calls to stderr.`;

export function addChatCommand(program: Command): void {
  apiCommand(
    program,
    'chat',
    'chat with a model that uses the tools of a project',
    [],
    'print the whole response as JSON',
  )
    .argument('<project>', 'id or name of the project')
    .argument('[message...]', 'the message (default: stdin, or a conversation on a terminal)')
    .option('-m, --model <name>', 'the model (default: the setting `chat.model`)')
    .option('--system <text>', 'the system prompt')
    .option('--tool <name>', 'a tool that it may use, or a pattern with * (repeatable; default: all)', list)
    .option('--max-steps <number>', 'the maximum number of turns of the model', wholeNumber)
    .option('--max-tokens <number>', 'the maximum length of each turn', wholeNumber)
    .option('--api-key-secret <name>', 'the secret that holds the API key of the model')
    .addHelpText('after', help)
    .action(async (project, words, flags) => (await import('./actions.ts')).chat(project, words, flags));
}
