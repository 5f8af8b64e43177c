import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { asSwitchboardError } from '../errors.ts';
import type { ServerConfig, ServerTransport } from './types.ts';
import { missingIn, resolveVariables } from './variables.ts';

export interface StartCheck {
  /** Why it cannot be started here. */
  problems: string[];
  /** What it needs that may be elsewhere. */
  warnings: string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether a server could be started from here: its command and folder are there, and its variables are set. */
export function checkStart({ name, transport }: ServerConfig, environment: Environment): StartCheck {
  const warnings = missingIn(transport, (variable) => environment[variable]).map(
    ({ name: variable, place }) =>
      `${name}: the variable ${variable} (in ${place}) is not set here: set it, give a default with \${${variable}:-…}, or keep it as a secret of the project "default"`,
  );
  if (warnings.length > 0) return { problems: [], warnings };
  try {
    const resolved = resolveVariables(transport, name, (variable) => environment[variable]);
    return {
      problems: programProblems(resolved, environment).map((problem) => `${name}: ${problem}`),
      warnings,
    };
  } catch (error) {
    return { problems: [asSwitchboardError(error).message], warnings };
  }
}

function programProblems(transport: ServerTransport, environment: Environment): string[] {
  if (transport.type !== 'stdio') return [];
  const { command, cwd, env } = transport;
  if (!isFolder(cwd)) return [`the folder ${JSON.stringify(cwd)} does not exist`];
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
