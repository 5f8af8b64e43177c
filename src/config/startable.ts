import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { asSwitchboardError } from '../errors.ts';
import type { ServerConfig, ServerTransport } from './types.ts';
import { fillPresent, resolveVariables } from './variables.ts';

export interface StartCheck {
  /** Why it cannot be started here. */
  problems: string[];
  /** What it needs that may be elsewhere. */
  warnings: string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether a server could be started from here: its command and folder are there, and its variables are set. */
export function checkStart({ name, transport }: ServerConfig, environment: Environment): StartCheck {
  const lookup = (variable: string) => environment[variable];
  const { transport: filled, missing } = fillPresent(transport, lookup);
  const warnings = missing.map(
    ({ name: variable, place }) =>
      `${name}: the variable ${variable} (in ${place}) is not set here: set it, give a default with \${${variable}:-…}, or keep it as a secret of the project "default"`,
  );
  try {
    // Also what can only be wrong once all are there.
    if (missing.length === 0) resolveVariables(transport, name, lookup);
    const places = new Set(missing.map(({ place }) => place));
    const problems = programProblems(filled, environment, places).map((problem) => `${name}: ${problem}`);
    return { problems, warnings };
  } catch (error) {
    return { problems: [asSwitchboardError(error).message], warnings };
  }
}

/** `unknown` are the places whose variables are not set: nothing can be said of them. */
function programProblems(
  transport: ServerTransport,
  environment: Environment,
  unknown: ReadonlySet<string>,
): string[] {
  if (transport.type !== 'stdio') return [];
  const { cwd } = transport;
  const folder =
    unknown.has('cwd') || isFolder(cwd) ? [] : [`the folder ${JSON.stringify(cwd)} does not exist`];
  // A command in a folder that is not there is not there either.
  const isCommandKnown = !unknown.has('command') && !unknown.has('env.PATH');
  const isInFolder = transport.command.includes('/') && transport.command.startsWith(cwd);
  return isCommandKnown && !(folder.length > 0 && isInFolder)
    ? [...folder, ...commandProblems(transport, environment)]
    : folder;
}

function commandProblems(
  { command, env }: Extract<ServerTransport, { type: 'stdio' }>,
  environment: Environment,
): string[] {
  const shown = `the command ${JSON.stringify(command)}`;
  if (!command.includes('/')) {
    const folders = (env.PATH ?? environment.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
    return folders.some((folder) => isProgram(join(folder, command))) ? [] : [`${shown} is not in the PATH`];
  }
  if (isProgram(command)) return [];
  return [`${shown} ${isThere(command) ? 'cannot be executed' : 'does not exist'}`];
}

/** On Windows the system adds what is missing of the name. */
function isProgram(path: string): boolean {
  const extensions = process.platform === 'win32' ? ['', '.exe', '.cmd', '.bat', '.com'] : [''];
  return extensions.some((extension) => {
    try {
      accessSync(path + extension, constants.X_OK);
      return statSync(path + extension).isFile();
    } catch {
      return false;
    }
  });
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
