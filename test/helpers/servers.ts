import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from './free-port.ts';
import { fixtureProgram } from './programs.ts';

const root = join(import.meta.dirname, '../..');

type ReferenceServer = 'everything' | 'filesystem' | 'memory';

/** A reference server as it stands in a configuration: run over stdio. */
export function referenceServer(name: ReferenceServer, ...more: string[]) {
  return { command: process.execPath, args: [programOf(name), ...more] };
}

/** A server of test/fixtures as it stands in a configuration. */
export function fixtureServer(name: string, env: Record<string, string> = {}, ...more: string[]) {
  return {
    command: process.execPath,
    args: [fixtureProgram(name), ...more],
    env,
  };
}

export interface RunningServer extends AsyncDisposable {
  url: string;
}

const httpModes = {
  sse: { path: '/sse', ready: /is running on port/ },
  streamableHttp: { path: '/mcp', ready: /listening on port/ },
};

/** Runs the reference server `everything` in one of its HTTP modes, which take the port as a variable. */
export async function startEverything(mode: keyof typeof httpModes): Promise<RunningServer> {
  const { path, ready } = httpModes[mode];
  // Another process may take the free port first; then the server ends and gets another.
  for (;;) {
    const port = await freePort();
    const child = spawn(process.execPath, [programOf('everything'), mode], {
      env: { ...process.env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = once(child, 'exit');
    const said = createInterface({ input: child.stderr });
    const isServing = await new Promise<boolean>((resolve) => {
      said.on('line', (line) => ready.test(line) && resolve(true));
      said.on('close', () => resolve(false));
    });
    if (!isServing) continue;
    return {
      url: `http://127.0.0.1:${port}${path}`,
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL');
        await exited;
      },
    };
  }
}

function programOf(name: ReferenceServer): string {
  return join(root, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
}
