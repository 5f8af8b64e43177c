import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';

/** What went wrong in words for whoever typed the command; shown without a stack. */
export class SetupError extends Error {}

const heartbeatMs = 15_000;

/**
 * Runs a program and gives {code, output}; code is undefined when there is no such program. With `show`, its output
 * is passed on as it comes; silence is broken now and then, so that nobody takes a slow network for a hang.
 */
export function run(command, args, { cwd, env = process.env, show = false, label = command } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      // npm is a .cmd file there, which only a shell can start.
      shell: process.platform === 'win32' && command === 'npm',
    });
    const started = Date.now();
    const heartbeat = setInterval(() => {
      console.log(`setup: ${label}: still working after ${Math.round((Date.now() - started) / 1000)} s`);
    }, heartbeatMs);
    let output = '';
    const collect = (target) => (chunk) => {
      output += chunk;
      if (show) target.write(chunk);
    };
    child.stdout.on('data', collect(process.stdout));
    child.stderr.on('data', collect(process.stderr));
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
 * The environment without the clone's own node_modules/.bin in PATH: the node in there is what npm is about to
 * replace, so npm and the install scripts must not run on it.
 */
export function environmentOutside(root) {
  const own = join(root, 'node_modules', '.bin');
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== own);
  return { ...process.env, PATH: path.join(delimiter) };
}
