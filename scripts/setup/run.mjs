import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';

/** An error for the user, shown without a stack. */
export class SetupError extends Error {}

const heartbeatMs = 15_000;

/**
 * Runs a program and resolves with {code, output}; code is undefined if there is no such program. Prints a line now and
 * then, so that a slow network does not look like a hang.
 */
export function run(command, args, { cwd, env = process.env, label = command } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      // On Windows npm is a .cmd file, which only a shell can start.
      shell: process.platform === 'win32' && command === 'npm',
    });
    const started = Date.now();
    const heartbeat = setInterval(() => {
      console.log(`setup: ${label}: still working after ${Math.round((Date.now() - started) / 1000)} s`);
    }, heartbeatMs);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    child.on('error', (error) => {
      clearInterval(heartbeat);
      if (error.code === 'ENOENT') resolve({ code: undefined, output });
      else reject(error);
    });
    child.on('close', (code, signal) => {
      clearInterval(heartbeat);
      resolve({ code: code ?? 128, output: signal ? `${output}\nended by ${signal}` : output });
    });
  });
}

const networkTrouble =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|getaddrinfo|network|dns error|Max retries|Failed to establish|Failed to fetch/i;

export function looksLikeNetworkTrouble(output) {
  return networkTrouble.test(output);
}

/**
 * The environment without the clone's node_modules/.bin in PATH: npm and install scripts must not run on the node in
 * there, because npm is about to replace it.
 */
export function environmentOutside(root) {
  const own = join(root, 'node_modules', '.bin');
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== own);
  return { ...process.env, PATH: path.join(delimiter) };
}
