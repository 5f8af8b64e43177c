import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import { home } from '../home.ts';

/** The configuration file: the one that is named, or the first that exists of the usual ones. */
export function findConfig(named: string | undefined): string {
  if (named !== undefined) return resolve(named);
  const usual = ['mcp.json', '.mcp.json', join(home(), 'mcp.json')];
  const found = usual.find((path) => existsSync(path));
  if (found !== undefined) return resolve(found);
  throw new SwitchboardError(
    'invalid_config',
    `No configuration file: none of ${usual.join(', ')} exists. Name one with --config, or make one with: switchboard import <file>`,
  );
}
