import { join } from 'node:path';
import { openToken } from './access/token.ts';
import type { ServerEvent, ServerView } from './api/views.ts';
import type { Waiting } from './app/drain.ts';
import { type App, type AppEvents, type AppOptions, withOverrides } from './app/options.ts';
import { type OpenDatabase, openDatabase } from './app/persistence.ts';
import { refuseTakenPort } from './app/port.ts';
import { Switchboard } from './app/switchboard.ts';
import { trustAuthorities } from './channels/authorities.ts';
import { endLeftovers, ProcessRecord } from './channels/process-record.ts';
import { type Configuration, loadConfiguration, watchConfiguration } from './config.ts';
import { SwitchboardError } from './errors.ts';

export type { App, AppEvents, AppOptions, ServerEvent, ServerView, Waiting };

const loopbackHosts = new Set(['127.0.0.1', '::1', 'localhost']);

/** Puts the parts together and runs them until stop(). */
export async function startApp(options: AppOptions, events: AppEvents): Promise<App> {
  if (!loopbackHosts.has(options.host)) {
    throw new SwitchboardError(
      'invalid_config',
      `Switchboard is not opened to the network: it does not listen on ${options.host}. Use 127.0.0.1, and from other machines a tunnel (ssh -L).`,
    );
  }
  await refuseTakenPort(options.host, options.port);
  let early: Configuration | SwitchboardError | undefined;
  let reload = (result: Configuration | SwitchboardError): void => {
    early = result;
  };
  trustAuthorities(process.env, events.warned);
  const runFolder = join(options.home, 'run');
  await endLeftovers(runFolder, events.warned);
  const record = ProcessRecord.open(runFolder, events.warned);
  options.killSignal?.addEventListener('abort', () => record.killAll());
  const watch = watchConfiguration(options.configPath, (result) => reload(result), events.warned);
  let database: OpenDatabase | undefined;
  try {
    const configuration = withOverrides(await loadConfiguration(options.configPath, events.warned), options);
    record.inheritsNetwork = configuration.settings.inheritNetwork;
    database = await openDatabase(options, events);
    const token = tokenOf(options.home, events.warned);
    const switchboard = new Switchboard({ configuration, database, token, record, watch, options, events });
    await switchboard.start();
    reload = (result) => switchboard.reload(result);
    if (early !== undefined) reload(early);
    return switchboard;
  } catch (error) {
    watch.close();
    await database?.store.close();
    record.close();
    throw error;
  }
}

/** Without a token our own user is let in, and nobody else. */
function tokenOf(home: string, warn: (message: string) => void): string | undefined {
  try {
    return openToken(home, warn);
  } catch (error) {
    warn(`There is no token to be let in with: ${(error as Error).message}`);
    return undefined;
  }
}
