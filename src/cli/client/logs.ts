import type { HostedLine, HostedView } from '../../api/hosted-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { callApi, projectPath } from '../api.ts';
import { DEFAULT_PROJECT } from '../defaults.ts';
import { readEvents } from '../events.ts';
import { exitCodes, usageError } from '../exit.ts';
import { allHosted, ambiguous, hostedPath } from '../hosted/find.ts';
import { complain, localTime, print, printJson, printJsonLine } from '../output.ts';

interface LogsFlags {
  url: string;
  project?: string;
  follow?: boolean;
  json?: boolean;
}

const hostless = new Set<string>(['no_database', 'not_found']);

/** Shows the last log lines of a server; for a hosted server it can also follow new ones. */
export async function logs(server: string, flags: LogsFlags): Promise<number> {
  const hosted = await hostedNamed(server, flags);
  const { project = DEFAULT_PROJECT } = flags;
  const own = flags.project === undefined ? hosted.find((each) => each.project === project) : hosted[0];
  if (own !== undefined) return hostedLog(own, flags);
  try {
    await serverLog(server, project, flags);
    return exitCodes.ok;
  } catch (error) {
    // Without -P, falls back to a hosted server of another project if the name is unique.
    const isUnknown = error instanceof SwitchboardError && error.code === 'not_found';
    if (!isUnknown || hosted.length === 0) throw error;
    if (hosted.length > 1) throw ambiguous(server, hosted);
    return hostedLog(hosted[0]!, flags);
  }
}

/** Empty without a database, or if the Switchboard is too old to host servers. */
async function hostedNamed(server: string, flags: LogsFlags): Promise<HostedView[]> {
  try {
    return (await allHosted(flags)).filter(({ id, name }) => id === server || name === server);
  } catch (error) {
    if (error instanceof SwitchboardError && hostless.has(error.code)) return [];
    throw error;
  }
}

async function serverLog(server: string, project: string, { url, follow, json }: LogsFlags): Promise<void> {
  const path = projectPath(project, 'servers', server, 'logs');
  const { lines } = await callApi<{ lines: string[] }>(url, 'GET', path);
  if (follow) throw usageError(`Only the logs of hosted servers can be followed; "${server}" is not hosted.`);
  if (json) printJson(lines);
  else if (lines.length > 0) print(lines.join('\n'));
}

async function hostedLog(server: HostedView, { url, follow, json }: LogsFlags): Promise<number> {
  const { lines } = await callApi<{ lines: HostedLine[] }>(url, 'GET', hostedPath(server, 'logs'));
  if (follow) return followLog(server, url, json ?? false);
  if (json) printJson(lines);
  else if (lines.length > 0) print(lines.map(lineText).join('\n'));
  return exitCodes.ok;
}

function lineText({ at, line }: HostedLine): string {
  return `${localTime(at)}  ${line}`;
}

async function followLog(server: HostedView, url: string, asJson: boolean): Promise<number> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  // The reader of stdout has closed it.
  process.stdout.on('error', () => stop.abort());
  const show = (type: string, data: unknown) => {
    if (type !== 'line') return;
    if (asJson) printJsonLine(data);
    else print(lineText(data as HostedLine));
  };
  const { error } = await readEvents(url, `${hostedPath(server, 'logs')}?follow=1`, show, stop.signal);
  if (stop.signal.aborted) return exitCodes.ok;
  const reason = error === undefined ? 'the server was removed, or Switchboard has stopped' : error.message;
  complain(`The log of ${server.name} has ended: ${reason}.`);
  return error === undefined ? exitCodes.ok : exitCodes.unreachable;
}
