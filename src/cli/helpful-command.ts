import { Command } from 'commander';

/** After an error, each command refers to its own help. */
export class HelpfulCommand extends Command {
  override createCommand(name?: string): Command {
    return new HelpfulCommand(name);
  }

  override copyInheritedSettings(parent: Command): this {
    super.copyInheritedSettings(parent);
    return this.showHelpAfterError(`(see: ${pathOf(this)} --help)`);
  }
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
