import { realpathSync, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import type { ServerConfig } from './types.ts';
import { fillKnown } from './variables.ts';

interface Reach {
  command?: string | undefined;
  args?: readonly string[] | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  url?: string | undefined;
}

const loopback = new Set(['127.0.0.1', 'localhost', '[::1]']);
/** Matches the command by name, by path, or as the script that Node runs. */
const ownProgram = /^(.*[\\/])?switchboard(\.(js|cmd|exe))?$/;

/** Whether a server connects to the Switchboard at `address`, over HTTP or through a bridge. */
export function isSelf({ command, args = [], env = {}, url }: Reach, address: string): boolean {
  if (url !== undefined) return isEndpoint(url, address);
  const words = [command ?? '', ...args];
  const start = words.findIndex((word, index) => ownProgram.test(word) && words[index + 1] === 'stdio');
  if (start === -1) return false;
  const option = words.findIndex((word, index) => index > start && /^--url(=|$)/.test(word));
  const named =
    option === -1 ? env.SWITCHBOARD_URL : (/^--url=(.*)$/.exec(words[option]!)?.[1] ?? words[option + 1]);
  return named === undefined || isSameHost(named, address);
}

export function selfWarnings(servers: readonly ServerConfig[], address: string): string[] {
  return servers
    .filter(({ enabled, transport }) => enabled && transport.type !== 'hosted' && isSelf(transport, address))
    .map(
      ({ name }) =>
        `${name}: this is Switchboard itself (${address}), which cannot be a server of its own: remove it. Where this is a client's file, import its servers into another one (switchboard import FILE)`,
    );
}

function isEndpoint(text: string, address: string): boolean {
  const { pathname = '' } = URL.parse(text) ?? {};
  return /^\/(mcp|sse)(\/|$)/.test(pathname) && isSameHost(text, address);
}

/** All loopback names are the same host. */
function isSameHost(one: string, other: string): boolean {
  const [left, right] = [URL.parse(one), URL.parse(other)];
  if (left === null || right === null || left.port !== right.port) return false;
  return left.hostname === right.hostname || (loopback.has(left.hostname) && loopback.has(right.hostname));
}

/** Warns of servers whose folder contains the configuration file: a tool that can write the file can run commands. */
export function reachWarnings(servers: readonly ServerConfig[], file: string): string[] {
  const real = realPath(file);
  if (real === undefined) return [];
  return servers.flatMap(({ name, enabled, transport }) => {
    if (!enabled || transport.type !== 'stdio') return [];
    const found = transport.args.find((argument) =>
      // Also matches `--root=/home/you`.
      [argument, argument.replace(/^-[^=]*=/, '')].some((text) => holds(text, transport.cwd, real)),
    );
    if (found === undefined) return [];
    return `${name}: this file is in the folder ${JSON.stringify(found)}, which is an argument of the server: if its tools read and write files there, they can read and change this configuration, and so run commands. Give it another folder, or keep this file elsewhere`;
  });
}

function holds(text: string, cwd: string, file: string): boolean {
  const filled = fillKnown(text, (variable) => process.env[variable]);
  if (filled === '') return false;
  const folder = realPath(resolve(cwd, filled));
  if (folder === undefined || !statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return false;
  return file.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
