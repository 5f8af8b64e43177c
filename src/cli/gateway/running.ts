import { spawn } from 'node:child_process';
import { mkdirSync, openSync, realpathSync } from 'node:fs';
import { join as joinPath, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { SwitchboardError } from '../../errors.ts';
import type { Switchboard } from '../../gateway/stdio/client.ts';
import { home } from '../../home.ts';
import { apiPassFor, type Pass, passFor } from '../access.ts';
import { callApi } from '../api.ts';
import { endpointOf } from '../defaults.ts';
import { findConfig } from '../input.ts';
import { checkReachable } from '../mcp-client.ts';
import { complain } from '../output.ts';

export interface BridgeFlags {
  url: string;
  project?: string;
  config?: string;
}

/** How long one that may come back by itself is waited for. */
const RETURN_MS = 15_000;
/** How long one that we started may take, as long as it has not ended. */
const START_MS = 120_000;
/** A Switchboard that was started for a bridge ends when it has had no client for this long. */
const IDLE_EXIT_SECONDS = 300;
/** As `npm start` does it: a heap that begins small collects its garbage too often. */
const HEAP_FLAG = '--initial-heap-size=128';

/** The one at this address, which is started where it does not run. */
export function switchboardAt(flags: BridgeFlags): Switchboard {
  let starting: Promise<void> | undefined;
  let wasThere = false;
  let pass: Pass = { headers: {} };
  return {
    endpoint: endpointOf(flags),
    get pass() {
      return pass;
    },
    ensureRunning() {
      starting ??= ensureRunning(flags, wasThere)
        .then(async () => {
          wasThere = true;
          // Where it was our own, one of another user is none that comes back.
          pass = await (pass.vet === undefined ? passFor : apiPassFor)(flags.url);
        })
        .finally(() => {
          starting = undefined;
        });
      return starting;
    },
    log: complain,
  };
}

/** One that was there may be about to come back: then it is waited for, also where we cannot start one ourselves. */
async function ensureRunning(flags: BridgeFlags, wasThere: boolean): Promise<void> {
  const { url } = flags;
  if (await isRunning(url)) {
    if (!wasThere) await checkConfig(flags);
    return;
  }
  const started = wasThere ? attempt(() => start(flags)) : start(flags);
  const begin = Date.now();
  const limit = () => (started === undefined || started.hasEnded() ? RETURN_MS : START_MS);
  while (Date.now() < begin + limit()) {
    if (await isRunning(url)) {
      started?.leave();
      if (!wasThere) await checkConfig(flags);
      return;
    }
    // Two bridges may start at once: the one that lost finds the other's.
    if (started?.hasEnded() && !wasThere && !(await isRunning(url))) break;
    await delay(50);
  }
  throw new SwitchboardError(
    'invalid_config',
    `Switchboard did not start at ${url}; ${joinPath(home(), 'switchboard.log')} says why.`,
  );
}

/** Whoever names a file expects its servers, and not those that somebody else has started Switchboard with. */
async function checkConfig({ url, config }: BridgeFlags): Promise<void> {
  if (config === undefined) return;
  const { config: present } = await callApi<{ config?: string }>(url, 'GET', '/status');
  const wanted = resolve(config);
  if (present === undefined || realPath(present) === realPath(wanted)) return;
  throw new SwitchboardError(
    'invalid_config',
    `The Switchboard at ${url} runs with ${present}, not with ${wanted}. Leave out --config to use it as it is, or give --url another port to start one of its own.`,
  );
}

function realPath(path: string): string {
  return attempt(() => realpathSync(path)) ?? path;
}

interface Started {
  hasEnded(): boolean;
  /** Goes on without it. */
  leave(): void;
}

function start({ url, config }: BridgeFlags): Started {
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
  return { hasEnded: () => exited, leave: () => child.unref() };
}

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

async function isRunning(url: string): Promise<boolean> {
  return checkReachable(url).then(
    () => true,
    () => false,
  );
}
