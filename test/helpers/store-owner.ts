import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fixtureProgram } from './programs.ts';

interface StoreOwner extends AsyncDisposable {
  pid: number;
  /** `open`, or the error. */
  said: string;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Another process with an open store. */
export async function startStoreOwner(home: string): Promise<StoreOwner> {
  const child: ChildProcessByStdio<null, Readable, null> = spawn(
    process.execPath,
    [fixtureProgram('opens-store'), home],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit');
  const [said] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await exited;
  };
  return {
    pid: child.pid!,
    said,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    [Symbol.asyncDispose]: () => end('SIGKILL'),
  };
}
