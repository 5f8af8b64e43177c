import { execFile } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { endianness } from 'node:os';
import { promisify } from 'node:util';

interface End {
  address: string;
  port: number;
}

/** A local connection to us. */
export interface Ends {
  theirs: End;
  ours: End;
}

/** The user of the process at the other end; undefined if unknown. */
export type Owners = (ends: Ends) => number | undefined;

export type Table = '/proc/net/tcp' | '/proc/net/tcp6' | 'lsof';

/**
 * The tables with the other end of a connection to this local address, in the order to search: IPv4 addresses may be
 * reached through IPv6 sockets, and a row that moves during a read is missed, so the first is read again.
 */
export function tablesOf(address: string, platform = process.platform): Table[] {
  if (platform !== 'linux') return ['lsof', 'lsof'];
  const usual = isIPv4(withoutMapping(address)) ? '/proc/net/tcp' : '/proc/net/tcp6';
  return [usual, '/proc/net/tcp6', usual];
}

/** Finds at least the `wanted` connections to a local port. Rejects if the system does not show them. */
export function readOwners(table: Table, port: number, wanted: readonly Ends[]): Promise<Owners> {
  return table === 'lsof' ? ownersFromLsof(port) : ownersIn(table, port, wanted);
}

/** The users that listen on this address or on all addresses. */
export async function readListeners(end: End, platform = process.platform): Promise<number[]> {
  if (platform !== 'linux') return listenersFromLsof(end);
  for (const table of tablesOf(end.address, platform)) {
    const users = await listenersIn(table, end);
    if (users.length > 0) return users;
  }
  return [];
}

/** The most that the kernel returns per read, even with the largest pages. */
const READ_BYTES = 64 * 1024;
const MOST_READS = 16;
/** Fewer lines in the first read mean a short table. */
const MANY_LINES = 20;

const LISTENING = '0A';
/** ESTABLISHED, FIN_WAIT1 and FIN_WAIT2: still open at their end. */
const connected = new Set(['01', '04', '05']);

async function ownersIn(table: string, port: number, wanted: readonly Ends[]): Promise<Owners> {
  const owners = new Map<string, number>();
  const suffix = `:${hexPort(port)}`;
  // Stops at the last wanted row: reading the rest could cost far more.
  const missing = new Set(wanted.map(rowKey));
  await eachSocket(table, port, ({ local, remote, state, uid, inode }) => {
    // A socket closed by its process has no inode, and is shown as root's.
    if (!connected.has(state) || inode === '0' || !remote.endsWith(suffix)) return false;
    const key = `${local} ${remote}`;
    owners.set(key, uid);
    missing.delete(key);
    return missing.size === 0;
  });
  return (ends) => owners.get(rowKey(ends));
}

function rowKey({ theirs, ours }: Ends): string {
  return `${hexEnd(theirs)} ${hexEnd(ours)}`;
}

async function listenersIn(table: string, end: End): Promise<number[]> {
  const users: number[] = [];
  const suffix = `:${hexPort(end.port)}`;
  await eachSocket(table, end.port, ({ local, state, uid }) => {
    const isListener = state === LISTENING && local.endsWith(suffix);
    if (isListener && (local === hexEnd(end) || /^0+:/.test(local))) users.push(uid);
    return false;
  });
  return users;
}

interface SocketRow {
  local: string;
  remote: string;
  state: string;
  uid: number;
  inode: string;
}

/** Streams the rows with this port, since a user may open many sockets, until `take` returns true. */
async function eachSocket(table: string, port: number, take: (row: SocketRow) => boolean): Promise<void> {
  const mark = `:${hexPort(port)} `;
  await eachLine(table, (line) => line.includes(mark) && take(rowOf(line)));
}

function rowOf(line: string): SocketRow {
  const [, local = '', remote = '', state = '', , , , uid, , inode = '0'] = line.trim().split(/\s+/);
  return {
    local: withoutHexMapping(local),
    remote: withoutHexMapping(remote),
    state,
    uid: Number(uid),
    inode,
  };
}

/**
 * The kernel returns a few whole lines per read. Reads of a long table run in parallel, because a busy event loop would
 * delay each one; their order does not matter. Reads past the end are avoided: each makes the kernel scan the whole
 * table again.
 */
async function eachLine(path: string, take: (line: string) => boolean): Promise<void> {
  // Without IPv6 the table does not exist.
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return;
  const buffers: Buffer[] = [];
  try {
    // How many more reads are likely to return lines. Sockets close meanwhile.
    let likely = 0;
    for (let isFirst = true; ; isFirst = false) {
      const count = Math.min(Math.max(Math.floor(0.8 * likely), 1), MOST_READS);
      while (buffers.length < count) buffers.push(Buffer.allocUnsafeSlow(READ_BYTES));
      const reads = await Promise.all(
        buffers.slice(0, count).map((buffer) => file.read(buffer, 0, READ_BYTES, null)),
      );
      let lines = 0;
      for (const { buffer, bytesRead } of reads) {
        for (const line of buffer.toString('latin1', 0, bytesRead).split('\n')) {
          lines++;
          if (take(line)) return;
        }
      }
      if (reads.some(({ bytesRead }) => bytesRead === 0)) return;
      if (isFirst && lines >= MANY_LINES) likely = (await roughLengthOf(path)) / lines;
      likely -= count;
    }
  } finally {
    await file.close();
  }
}

/** Estimates the number of sockets without a scan of the table. */
async function roughLengthOf(path: string): Promise<number> {
  const isNewer = path.endsWith('6');
  const text = await readFile(isNewer ? '/proc/net/sockstat6' : '/proc/net/sockstat', 'latin1').catch(
    () => '',
  );
  const [, used = '0', waiting = '0'] =
    (isNewer ? /^TCP6: inuse (\d+)/m : /^TCP: inuse (\d+) orphan \d+ tw (\d+)/m).exec(text) ?? [];
  return Number(used) + Number(waiting);
}

function withoutHexMapping(end: string): string {
  return end.startsWith(mappedPrefix) ? end.slice(mappedPrefix.length) : end;
}

function hexEnd({ address, port }: End): string {
  return `${hexAddress(address)}:${hexPort(port)}`;
}

function hexPort(port: number): string {
  return hex([port >> 8, port & 0xff]);
}

/** As in /proc/net: 32-bit words in host byte order. */
function hexAddress(address: string): string {
  const plain = withoutMapping(address);
  return hexWords(isIPv4(plain) ? plain.split('.').map(Number) : ipv6Bytes(plain));
}

/** Unwraps IPv4-mapped IPv6 addresses. */
function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

function hexWords(bytes: number[]): string {
  let text = '';
  for (let start = 0; start < bytes.length; start += 4) {
    const word = bytes.slice(start, start + 4);
    text += hex(endianness() === 'LE' ? word.reverse() : word);
  }
  return text;
}

const mappedPrefix = hexWords([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);

function ipv6Bytes(address: string): number[] {
  const [head, tail] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const gap = Array.from({ length: 8 - head!.length - (tail?.length ?? 0) }, () => '0');
  const groups = [...head!, ...gap, ...(tail ?? [])].map((group) => Number.parseInt(group, 16));
  return groups.flatMap((group) => [group >> 8, group & 0xff]);
}

function hex(bytes: number[]): string {
  return bytes.map((byte) => byte.toString(16).padStart(2, '0').toUpperCase()).join('');
}

const LSOF_MS = 5_000;
const run = promisify(execFile);

/** Only root sees the sockets of other users; for others they have no owner. */
async function ownersFromLsof(port: number): Promise<Owners> {
  const owners = socketsIn(await lsof(port, 'ESTABLISHED'));
  return ({ theirs, ours }) => owners.get(`${textOf(theirs)}->${textOf(ours)}`);
}

async function listenersFromLsof(end: End): Promise<number[]> {
  const sockets = socketsIn(await lsof(end.port, 'LISTEN').catch(() => ''));
  return [textOf(end), `*:${end.port}`].flatMap((name) => sockets.get(name) ?? []);
}

async function lsof(port: number, state: string): Promise<string> {
  const words = ['-nP', `-iTCP:${port}`, `-sTCP:${state}`, '-Fun'];
  const path = `${process.env.PATH ?? ''}:/usr/sbin`;
  return (await run('lsof', words, { timeout: LSOF_MS, env: { PATH: path } })).stdout;
}

/** Parses `lsof -Fun`: a `u` line with the user of a process, then an `n` line for each of its sockets. */
export function socketsIn(output: string): Map<string, number> {
  const sockets = new Map<string, number>();
  let user = Number.NaN;
  for (const line of output.split('\n')) {
    if (line.startsWith('u')) user = Number(line.slice(1));
    else if (line.startsWith('n')) sockets.set(line.slice(1), user);
  }
  return sockets;
}

function textOf({ address, port }: End): string {
  const plain = withoutMapping(address);
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`;
}
