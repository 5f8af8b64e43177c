import { realpathSync, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import type { ServerConfig } from './types.ts';
import { fillKnown } from './variables.ts';

/** How a server is reached, in a file of ours or of another program. */
interface Reach {
  command?: string | undefined;
  args?: readonly string[] | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  url?: string | undefined;
}

const loopback = new Set(['127.0.0.1', 'localhost', '[::1]']);
/** The command, however it is started: by its name, by its path, or as the file that Node runs. */
const ownProgram = /^(.*[\\/])?switchboard(\.(js|cmd|exe))?$/;

/** Whether a server is the Switchboard at an address itself: over HTTP, or over a bridge to it. */
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

/** What to say of servers that are the Switchboard at the address itself. */
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

/** All names of this machine for itself are one host. */
function isSameHost(one: string, other: string): boolean {
  const [left, right] = [URL.parse(one), URL.parse(other)];
  if (left === null || right === null || left.port !== right.port) return false;
  return left.hostname === right.hostname || (loopback.has(left.hostname) && loopback.has(right.hostname));
}

/** What to say of servers that are given a folder which the configuration file is in: whoever writes it runs commands. */
export function reachWarnings(servers: readonly ServerConfig[], file: string): string[] {
  const real = realPath(file);
  if (real === undefined) return [];
  return servers.flatMap(({ name, enabled, transport }) => {
    if (!enabled || transport.type !== 'stdio') return [];
    const found = transport.args.find((argument) =>
      // `--root=/home/you` too.
      [argument, argument.replace(/^-[^=]*=/, '')].some((text) => holds(text, transport.cwd, real)),
    );
    if (found === undefined) return [];
    return `${name}: this file is in the folder ${JSON.stringify(found)}, which is an argument of the server: if its tools read and write files there, they can read and change this configuration, and so run commands. Give it another folder, or keep this file elsewhere`;
  });
}

/** Whether a text is a folder with the file somewhere in it. */
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
