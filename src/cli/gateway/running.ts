import { spawn } from 'node:child_process';
import { mkdirSync, openSync, realpathSync } from 'node:fs';
import { join as joinPath, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { SwitchboardError } from '../../errors.ts';
import type { RunningSwitchboard } from '../../gateway/stdio/client.ts';
import { home } from '../../home.ts';
import { ownPassFor, type Pass, passFor } from '../access.ts';
import { isLoopback } from '../addresses.ts';
import { callApi } from '../api.ts';
import { givenKey } from '../credential.ts';
import { endpointOf, KEY_VARIABLE } from '../defaults.ts';
import { findConfig } from '../input.ts';
import { checkReachable } from '../mcp-client.ts';
import { complain } from '../output.ts';
import { WrongAddressError } from '../reach.ts';

export interface BridgeFlags {
  url: string;
  project?: string;
  config?: string;
}

/** How long to wait for a Switchboard that may be restarting. */
const RETURN_MS = 15_000;
/** How long a Switchboard that we started may take, unless it exits. */
const START_MS = 120_000;
const POLL_MS = 50;
/** A Switchboard started for a bridge exits after this long without a client. */
const IDLE_EXIT_SECONDS = 300;
/** As in `npm start`: a small initial heap causes too many garbage collections. */
const HEAP_FLAG = '--initial-heap-size=128';

/** Connects to the Switchboard at an address, and starts it if necessary. */
export function switchboardAt(flags: BridgeFlags): RunningSwitchboard {
  let starting: Promise<void> | undefined;
  let ranBefore = false;
  let isChecked = false;
  let pass: Pass = { headers: {} };
  return {
    endpoint: endpointOf(flags),
    get pass() {
      return pass;
    },
    ensureRunning() {
      starting ??= ensureRunning(flags, ranBefore)
        .then(async () => {
          ranBefore = true;
          // If it ran as this user before, one of another user is not accepted in its place.
          pass = await (pass.vet === undefined ? passFor : ownPassFor)(flags.url);
          // With the token, requests are those of the local user.
          const sendsToken = givenKey() === undefined && pass.headers.authorization !== undefined;
          if (!isChecked && !sendsToken) await warnIfRefused(flags.url);
          isChecked = true;
        })
        .finally(() => {
          starting = undefined;
        });
      return starting;
    },
    log: complain,
  };
}

/** If it ran before, it may be restarting: waits for it even if starting one fails. */
async function ensureRunning(flags: BridgeFlags, ranBefore: boolean): Promise<void> {
  const { url } = flags;
  const failure = await failureToReach(url);
  if (failure === undefined) {
    if (!ranBefore) await checkConfig(flags);
    return;
  }
  if (!ranBefore && (failure instanceof WrongAddressError || !canStart(url))) throw failure;
  const started = ranBefore ? attempt(() => (canStart(url) ? start(flags) : undefined)) : start(flags);
  const begin = Date.now();
  const limit = () => (started === undefined || started.hasEnded() ? RETURN_MS : START_MS);
  while (Date.now() < begin + limit()) {
    if (await isRunning(url)) {
      started?.detach();
      if (!ranBefore) await checkConfig(flags);
      return;
    }
    // If two bridges start one at the same time, the loser uses the winner's.
    if (started?.hasEnded() && !ranBefore && !(await isRunning(url))) break;
    await delay(POLL_MS);
  }
  if (started === undefined) throw failure;
  throw new SwitchboardError(
    'invalid_config',
    `Switchboard did not start at ${url}; ${joinPath(home(), 'switchboard.log')} says why.`,
  );
}

/** One with a certificate needs options of its own, and so does one for other machines. */
function canStart(url: string): boolean {
  return isLoopback(url) && url.startsWith('http:');
}

/** Rejects a running Switchboard that uses another file than `--config`. */
async function checkConfig({ url, config }: BridgeFlags): Promise<void> {
  if (config === undefined) return;
  const { config: present } = await callApi<{ config?: string | null }>(url, 'GET', '/status');
  const wanted = resolve(config);
  // Only administrators see it.
  if (present === undefined || present === null || realPath(present) === realPath(wanted)) return;
  throw new SwitchboardError(
    'invalid_config',
    `The Switchboard at ${url} runs with ${present}, not with ${wanted}. Leave out --config to use it as it is, or set --url to another port to start a second one.`,
  );
}

function realPath(path: string): string {
  return attempt(() => realpathSync(path)) ?? path;
}

interface Started {
  hasEnded(): boolean;
  /** Lets this process exit before the child. */
  detach(): void;
}

function start({ url, config }: BridgeFlags): Started {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const folder = home();
  mkdirSync(folder, { recursive: true });
  const log = openSync(joinPath(folder, 'switchboard.log'), 'a');
  const words = ['up', '--config', findConfig(config), '--host', host, '--port', port || '80'];
  // It serves others too, and must not have our key.
  const { [KEY_VARIABLE]: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    [HEAP_FLAG, process.argv[1]!, ...words, '--exit-when-idle', String(IDLE_EXIT_SECONDS)],
    {
      detached: true,
      stdio: ['ignore', log, log],
      env,
    },
  );
  let exited = false;
  child.once('exit', () => {
    exited = true;
  });
  child.once('error', () => {
    exited = true;
  });
  return { hasEnded: () => exited, detach: () => child.unref() };
}

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

async function isRunning(url: string): Promise<boolean> {
  return (await failureToReach(url)) === undefined;
}

/** The client shows at most that requests fail. */
async function warnIfRefused(url: string): Promise<void> {
  await callApi(url, 'GET', '/whoami').catch((error: unknown) => {
    const isRefused = error instanceof SwitchboardError && error.code === 'unauthorized';
    if (isRefused) complain(`warning: ${error.message}`);
  });
}

function failureToReach(url: string): Promise<Error | undefined> {
  return checkReachable(url).then(
    () => undefined,
    (error: Error) => error,
  );
}
