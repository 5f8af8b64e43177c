import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fixtureServer } from '../helpers/switchboard.ts';
import type { Era, Target } from './peer.ts';

export type ServerTransport = 'stdio' | 'http';

interface ReachableServer extends AsyncDisposable {
  target: Target;
}

/** Over HTTP the fixture runs; over stdio the client starts it. */
export async function startServer(
  era: Era | 'both',
  transport: ServerTransport,
  env: Record<string, string>,
): Promise<ReachableServer> {
  const program = fixtureServer(`eras/${era}`, env);
  if (transport === 'stdio') return { target: program, async [Symbol.asyncDispose]() {} };
  const child = spawn(program.command, [...program.args, '--http'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return {
    target: JSON.parse(line) as { url: string },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
