import { spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { SwitchboardError } from '../../errors.ts';
import { checkReachable } from '../client.ts';
import { findConfig, home } from '../paths.ts';
import { endpointOf } from '../words.ts';

export interface BridgeFlags {
  url: string;
  project?: string;
  config?: string;
}

/** The Switchboard that everything is passed to. */
export interface Switchboard {
  endpoint: string;
  /** Starts it where it does not run. */
  ensureRunning(): Promise<void>;
}

const START_MS = 15_000;
/** A Switchboard that was started for a bridge ends when it has had no client for this long. */
const IDLE_EXIT_SECONDS = 300;
/** As `npm start` does it: a heap that begins small collects its garbage too often. */
const HEAP_FLAG = '--initial-heap-size=128';

export function switchboardFor(flags: BridgeFlags): Switchboard {
  let starting: Promise<void> | undefined;
  return {
    endpoint: endpointOf(flags),
    ensureRunning() {
      starting ??= ensureRunning(flags).finally(() => {
        starting = undefined;
      });
      return starting;
    },
  };
}

async function ensureRunning({ url, config }: BridgeFlags): Promise<void> {
  if (await isRunning(url)) return;
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const folder = home();
  mkdirSync(folder, { recursive: true });
  const log = openSync(joinPath(folder, 'switchboard.log'), 'a');
  const words = ['up', '--config', findConfig(config), '--host', host, '--port', port || '80'];
  const child = spawn(
    process.execPath,
    [HEAP_FLAG, process.argv[1]!, ...words, '--exit-when-idle', String(IDLE_EXIT_SECONDS)],
    {
      detached: true,
      stdio: ['ignore', log, log],
    },
  );
  let exited = false;
  child.once('exit', () => {
    exited = true;
  });
  child.once('error', () => {
    exited = true;
  });
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    if (await isRunning(url)) {
      child.unref();
      return;
    }
    // Two bridges may start at once: the one that lost finds the other's.
    if (exited && !(await isRunning(url))) break;
    await delay(50);
  }
  throw new SwitchboardError(
    'invalid_config',
    `Switchboard did not start at ${url}; ${joinPath(folder, 'switchboard.log')} says why.`,
  );
}

async function isRunning(url: string): Promise<boolean> {
  return checkReachable(url).then(
    () => true,
    () => false,
  );
}
