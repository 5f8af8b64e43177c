import { type Command, CommanderError } from 'commander';
import { SwitchboardError } from '../errors.ts';
import { identity } from '../self-identity.ts';
import { adviceFor } from './advice.ts';
import { addAuditCommand } from './audit/command.ts';
import { addCallsCommand } from './calls/command.ts';
import { addCanCommand } from './can/command.ts';
import { addChatCommand } from './chat/command.ts';
import { addClientCommands } from './client/command.ts';
import type { SetExitCode } from './defaults.ts';
import { exitCodeOf, exitCodes, RpcFailure, UnreachableError } from './exit.ts';
import { addFileCommands } from './files/command.ts';
import { addGatewayCommands } from './gateway/command.ts';
import { addGroupCommands } from './group/command.ts';
import { HelpfulCommand } from './helpful-command.ts';
import { addHostedCommands } from './hosted/command.ts';
import { addKeyCommands } from './key/command.ts';
import { addLimitCommands } from './limit/command.ts';
import { complain, printable, printJsonLine } from './output.ts';
import { addProductCommands } from './product/command.ts';
import { addProjectCommands } from './project/command.ts';
import { addRoleCommands } from './role/command.ts';
import { addRuleCommands } from './rule/command.ts';
import { addSecretCommands } from './secret/command.ts';
import { addServerCommands } from './server/command.ts';
import { addToolCommands } from './tool/command.ts';
import { addWhoamiCommand } from './whoami/command.ts';

const exitHelp = `
Environment: SWITCHBOARD_URL is the default of --url; SWITCHBOARD_KEY is a key for that Switchboard, which another
machine needs.
Exit codes: 0 success; 1 the operation failed (a tool or a server returned an error); 2 the command line or a
configuration file is invalid; 3 there is no Switchboard at the address.`;

/** Returns the exit code. */
export async function run(words: string[]): Promise<number> {
  let exitCode: number = exitCodes.ok;
  // Words after -- belong to another program.
  const asJson = words.slice(0, words.includes('--') ? words.indexOf('--') : undefined).includes('--json');
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
    // Commander has already printed it as text.
    if (asJson) printError({ code: 'usage', message: usageMessage(error) });
    return exitCodes.usage;
  }
}

/** Each command loads its code on demand: `up` needs no client, `check` no gateway. */
function commands(asJson: boolean, setExitCode: SetExitCode): Command {
  const program = new HelpfulCommand('switchboard')
    .description('One MCP endpoint for all of your MCP servers.')
    .version(identity().version)
    .exitOverride()
    .configureOutput(
      asJson ? { writeErr() {} } : { writeErr: (text) => process.stderr.write(printable(text)) },
    )
    .showHelpAfterError('(see: switchboard --help)')
    .addHelpText('afterAll', exitHelp);
  addGatewayCommands(program);
  addClientCommands(program, setExitCode);
  addFileCommands(program, setExitCode);
  addProjectCommands(program, setExitCode);
  addServerCommands(program, setExitCode);
  addHostedCommands(program, setExitCode);
  addToolCommands(program);
  addSecretCommands(program, setExitCode);
  addProductCommands(program, setExitCode);
  addKeyCommands(program, setExitCode);
  addGroupCommands(program, setExitCode);
  addRoleCommands(program);
  addRuleCommands(program, setExitCode);
  addLimitCommands(program, setExitCode);
  addCanCommand(program, setExitCode);
  addAuditCommand(program, setExitCode);
  addWhoamiCommand(program);
  addCallsCommand(program);
  addChatCommand(program);
  return program;
}

function usageMessage({ code, message }: CommanderError): string {
  return code === 'commander.help' ? 'a command is missing' : message.replace(/^error: /, '');
}

function report(error: unknown, asJson: boolean): void {
  const message = messageOf(error);
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
  const data = error instanceof SwitchboardError ? error.data : {};
  const details = Object.keys(data).length === 0 ? {} : { details: data };
  printError({ code, message, ...details, ...rpc });
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof RpcFailure)) return error.message;
  const { code, ...data } = (error.rpc.data ?? {}) as Record<string, unknown>;
  return error.message + adviceFor(code, data);
}

/** One line, because it may end a stream of JSON lines. */
function printError(error: object): void {
  printJsonLine({ error });
}
