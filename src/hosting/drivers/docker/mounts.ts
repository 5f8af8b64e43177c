import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Whether that process sees a mount on the folder. */
export async function isMounted(folder: string, pid = 'self'): Promise<boolean> {
  // Without root the engine's folders cannot be resolved, but their paths have no links.
  const path = await realpath(folder).catch(() => folder);
  const mounts = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
  return mounts.split('\n').some((line) => withoutEscapes(line.split(' ')[4] ?? '') === path);
}

/** The processes that listen on a unix socket: the engine, and what opened it for the engine. Empty if not on this machine. */
export async function listenersAt(socketPath: string): Promise<string[]> {
  const wanted = await withoutLinks(socketPath);
  const sockets = await readFile('/proc/net/unix', 'utf8').catch(() => '');
  const inodes = new Set<string>();
  for (const line of sockets.split('\n').slice(1)) {
    const [, , , flags = '', , , inode = '', ...path] = line.trim().split(/\s+/);
    const isListening = (Number.parseInt(flags, 16) & LISTENING) !== 0;
    if (isListening && (await withoutLinks(path.join(' '))) === wanted) inodes.add(`socket:[${inode}]`);
  }
  if (inodes.size === 0) return [];
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const holders = await Promise.all(pids.map((pid) => holdsOne(pid, inodes)));
  return pids.filter((_, index) => holders[index]);
}

/** __SO_ACCEPTCON of the kernel. */
const LISTENING = 0x10000;

async function holdsOne(pid: string, inodes: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  for (const file of await readdir(folder).catch(() => [])) {
    if (inodes.has(await readlink(join(folder, file)).catch(() => ''))) return true;
  }
  return false;
}

async function withoutLinks(path: string): Promise<string> {
  if (!path.startsWith('/')) return path;
  return join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path));
}

/** The kernel writes a space as \040. */
function withoutEscapes(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
