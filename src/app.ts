import { join } from 'node:path';
import type { ServerEvent, ServerView } from './api/views.ts';
import { checkPort } from './app/address.ts';
import { authenticationOf } from './app/authentication.ts';
import type { Waiting } from './app/drain.ts';
import { type App, type AppEvents, type AppOptions, withOverrides } from './app/options.ts';
import { type OpenDatabase, openDatabase } from './app/persistence.ts';
import { Switchboard } from './app/switchboard.ts';
import { trustAuthorities } from './channels/authorities.ts';
import { endLeftovers, ProcessRecord } from './channels/process-record.ts';
import { type Configuration, loadConfiguration, watchConfiguration } from './config.ts';
import type { SwitchboardError } from './errors.ts';
import { Certificate } from './gateway/http/tls.ts';
import { openToken } from './identity/token.ts';

export type { App, AppEvents, AppOptions, ServerEvent, ServerView, Waiting };

/** Starts Switchboard, which runs until stop(). */
export async function startApp(options: AppOptions, events: AppEvents): Promise<App> {
  await checkPort(options.host, options.port);
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
    const loaded = withOverrides(await loadConfiguration(options.configPath, events.warned), options);
    const settings = authenticationOf(loaded, options, events.warned);
    const certificate = settings.tls && new Certificate(settings.tls, events.warned);
    const configuration = { ...loaded, settings };
    record.inheritsNetwork = configuration.settings.inheritNetwork;
    database = await openDatabase(options, settings, events);
    const token = tokenOf(options.home, events.warned);
    const switchboard = new Switchboard({
      ...{ configuration, database, token, certificate, record, watch, options, events },
    });
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

/** Without a token, only processes of the same user may connect. */
function tokenOf(home: string, warn: (message: string) => void): string | undefined {
  try {
    return openToken(home, warn);
  } catch (error) {
    warn(`The access token could not be opened: ${(error as Error).message}`);
    return undefined;
  }
}
