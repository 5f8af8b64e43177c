import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Account } from './account.ts';
import { cleanEnvironment, isStartedWith } from './processes.ts';

const settings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  // Small, because it serves one process.
  shared_buffers: '16MB',
  max_connections: 30,
  max_wal_size: '256MB',
  io_method: 'sync',
  max_logical_replication_workers: 0,
  max_wal_senders: 0,
  wal_level: 'minimal',
  max_parallel_workers_per_gather: 0,
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Logs neither statements nor rows, which contain user data.
  log_checkpoints: 'off',
  log_min_messages: 'warning',
  log_min_error_statement: 'panic',
  log_parameter_max_length_on_error: 0,
  log_error_verbosity: 'terse',
};

/** Uses its own process group, so that signals from the terminal do not reach it. */
export function spawnPostmaster(
  postgres: string,
  data: string,
  account: Account,
  logFile: number,
): ChildProcess {
  const socketFolder = `"${data.replaceAll('"', '""')}"`;
  const [command, ...args] = [
    ...account.prefix,
    postgres,
    ...['-D', data],
    ...Object.entries({ ...settings, unix_socket_directories: socketFolder }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ]),
  ];
  const child = spawn(command!, args, {
    ...account.owner,
    cwd: '/',
    env: cleanEnvironment(),
    stdio: ['ignore', logFile, logFile],
    detached: true,
  });
  // The caller sees a failed spawn as an exit; nothing is logged.
  child.on('error', () => {});
  return child;
}

const FAST_STOP_MS = 10_000;
const STOP_AT_ONCE_MS = 5_000;

/** Tries a fast shutdown first; if it takes too long, the next start runs recovery. */
export async function stopPostmaster(
  pid: number,
  child: ChildProcess | undefined,
  data: string,
): Promise<void> {
  const isGone = () => (child === undefined ? !isStartedWith(pid, data) : hasExited(child));
  for (const [signal, patienceMs] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', STOP_AT_ONCE_MS],
    ['SIGKILL', STOP_AT_ONCE_MS],
  ] as const) {
    if (isGone()) return;
    sendSignal(pid, signal);
    if (await happensWithin(isGone, child, patienceMs)) return;
  }
}

export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has exited.
  }
}

export function hasExited(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

/** Polls, because there is no exit event for a process that is not our child. */
async function happensWithin(
  happened: () => boolean,
  child: ChildProcess | undefined,
  milliseconds: number,
): Promise<boolean> {
  const deadline = Date.now() + milliseconds;
  while (!happened() && Date.now() < deadline) {
    const pause = delay(child === undefined ? 20 : 200);
    await (child === undefined ? pause : Promise.race([once(child, 'exit'), pause]));
  }
  return happened();
}
