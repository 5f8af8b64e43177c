import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { asSwitchboardError } from '../errors.ts';
import type { ServerConfig, ServerTransport } from './types.ts';
import { fillPresent, resolveVariables } from './variables.ts';

export interface StartCheck {
  problems: string[];
  /** Variables that are not set here but may be set elsewhere. */
  warnings: string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Checks whether a server could start here: its command and folder exist, and its variables are set. */
export function checkStart({ name, transport }: ServerConfig, environment: Environment): StartCheck {
  const lookup = (variable: string) => environment[variable];
  const { transport: filled, missing } = fillPresent(transport, lookup);
  const warnings = missing.map(
    ({ name: variable, place }) =>
      `${name}: the variable ${variable} (in ${place}) is not set here: set it, give a default with \${${variable}:-…}, or keep it as a secret of the project "default"`,
  );
  try {
    // Some checks need all values.
    if (missing.length === 0) resolveVariables(transport, name, lookup);
    const places = new Set(missing.map(({ place }) => place));
    const problems = programProblems(filled, environment, places).map((problem) => `${name}: ${problem}`);
    return { problems, warnings };
  } catch (error) {
    return { problems: [asSwitchboardError(error).message], warnings };
  }
}

/** `unknown` has the fields with unset variables, which cannot be checked. */
function programProblems(
  transport: ServerTransport,
  environment: Environment,
  unknown: ReadonlySet<string>,
): string[] {
  if (transport.type !== 'stdio') return [];
  const { cwd } = transport;
  const folder =
    unknown.has('cwd') || isFolder(cwd) ? [] : [`the folder ${JSON.stringify(cwd)} does not exist`];
  // If the folder is missing, a command inside it is not reported too.
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

/** Windows adds the file extension. */
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
