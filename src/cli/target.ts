import { startApp } from '../app.ts';
import { home } from '../home.ts';
import { DEFAULT_URL } from './defaults.ts';
import { onStopSignals } from './exit.ts';
import { findConfig } from './input.ts';
import { complain } from './output.ts';

export interface TargetFlags {
  url?: string;
  config?: string;
}

/** Passes `action` the address of the running Switchboard or, with a configuration file, of a temporary one. */
export async function withSwitchboard<Result>(
  flags: TargetFlags,
  action: (url: string) => Promise<Result>,
): Promise<Result> {
  if (flags.config === undefined) return action(flags.url ?? DEFAULT_URL);
  const silent = {
    progressed() {},
    listening() {},
    serverChanged() {},
    configApplied() {},
    idle() {},
    waiting() {},
    warned: (message: string) => complain(`warning: ${message}`),
  };
  const interrupted = new AbortController();
  const kill = new AbortController();
  const exitNow = () => {
    kill.abort();
    process.exit(130);
  };
  const forgetSignals = onStopSignals(() => interrupted.abort(), exitNow);
  const { signal } = interrupted;
  const app = await startApp(
    {
      configPath: findConfig(flags.config),
      host: '127.0.0.1',
      port: 0,
      home: home(),
      database: { mode: 'none' },
      // Only this command uses it, and there are no keys without a database.
      auth: false,
      signal,
      killSignal: kill.signal,
    },
    silent,
  ).catch((error: unknown) => (signal.aborted ? exitNow() : Promise.reject(error)));
  let stopping: Promise<void> | undefined;
  const stop = () => {
    // Only this command uses it, so no calls need a grace period.
    stopping ??= app.stop(0);
    return stopping;
  };
  const stopAndExit = () => void stop().finally(exitNow);
  signal.addEventListener('abort', stopAndExit);
  if (signal.aborted) stopAndExit();
  try {
    return await action(app.url);
  } finally {
    await stop();
    forgetSignals();
  }
}
