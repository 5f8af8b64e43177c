/** Waits until a process listens, or fails with the reason. */
import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { HttpConnection } from './http-connection.ts';

const START_TIMEOUT_MS = 20_000;

/** A variant that cannot run here; the others are measured without it. */
export class Unavailable extends Error {}

/** Reads the `listening` event that our servers and Switchboard print, and drops the rest of the output. */
export function listeningUrl(child: ChildProcess): Promise<string> {
  return untilStarted(child, (resolve) => {
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const event = /^\{.*"event":"listening"/.test(line) ? (JSON.parse(line) as { url: string }) : undefined;
      if (event !== undefined) resolve(event.url);
    });
  });
}

export async function untilListening(child: ChildProcess, port: number): Promise<void> {
  child.stdout?.resume();
  let waiting = true;
  await untilStarted<void>(child, async (resolve) => {
    while (waiting) {
      try {
        (await HttpConnection.open(port)).destroy();
        resolve();
        return;
      } catch {
        await delay(5);
      }
    }
  }).finally(() => {
    waiting = false;
  });
}

function untilStarted<Value>(
  child: ChildProcess,
  watch: (resolve: (value: Value) => void) => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let errors = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-2_000);
    });
    const fail = (problem: string) => {
      clearTimeout(timer);
      reject(new Unavailable(`${problem}${errors === '' ? '' : `: ${errors.trim()}`}`));
    };
    const timer = setTimeout(() => fail(`did not listen within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => fail(`exited during start with ${signal ?? `code ${code}`}`));
    watch((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}

export function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Unavailable('could not be started');
  return child.pid;
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
