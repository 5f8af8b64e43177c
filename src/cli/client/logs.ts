import type { HostedLine, HostedView } from '../../api/hosted-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { callApi, projectPath } from '../api.ts';
import { DEFAULT_PROJECT } from '../defaults.ts';
import { exitCodes, usageError } from '../exit.ts';
import { follow } from '../follow.ts';
import { allHosted, ambiguous, hostedPath } from '../hosted/find.ts';
import { complain, localTime, print, printJson, printJsonLine } from '../output.ts';

interface LogsFlags {
  url: string;
  project?: string;
  follow?: boolean;
  json?: boolean;
}

const hostless = new Set<string>(['no_database', 'not_found']);

/** Shows the last lines of a server's log, and of a hosted one those too that come. */
export async function logs(server: string, flags: LogsFlags): Promise<number> {
  const hosted = await hostedNamed(server, flags);
  const { project = DEFAULT_PROJECT } = flags;
  const near = flags.project === undefined ? hosted.find((each) => each.project === project) : hosted[0];
  if (near !== undefined) return hostedLog(near, flags);
  try {
    await serverLog(server, project, flags);
    return exitCodes.ok;
  } catch (error) {
    // Whoever names no project may mean one of another.
    const isUnknown = error instanceof SwitchboardError && error.code === 'not_found';
    if (!isUnknown || hosted.length === 0) throw error;
    if (hosted.length > 1) throw ambiguous(server, hosted);
    return hostedLog(hosted[0]!, flags);
  }
}

/** None where nothing is hosted: there is no database, or an older Switchboard. */
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
  if (follow) throw usageError(`Only logs of hosted servers can be followed, and "${server}" is not one.`);
  if (json) printJson(lines);
  else if (lines.length > 0) print(lines.join('\n'));
}

async function hostedLog(server: HostedView, { url, follow: goesOn, json }: LogsFlags): Promise<number> {
  // Asked first where it is followed too: an event stream cannot say what is wrong.
  const { lines } = await callApi<{ lines: HostedLine[] }>(url, 'GET', hostedPath(server, 'logs'));
  if (goesOn) return followLog(server, url, json ?? false);
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
  // Whoever read what we print is gone: nobody is left to show it to.
  process.stdout.on('error', () => stop.abort());
  const show = (type: string, data: unknown) => {
    if (type !== 'line') return;
    if (asJson) printJsonLine(data);
    else print(lineText(data as HostedLine));
  };
  const { error } = await follow(`${url}/api/v1${hostedPath(server, 'logs')}?follow=1`, show, stop.signal);
  if (stop.signal.aborted) return exitCodes.ok;
  const how = error === undefined ? 'has ended: it was removed, or Switchboard has stopped' : error.message;
  complain(`The log of ${server.name} ${error === undefined ? how : `is lost: ${how}`}.`);
  return error === undefined ? exitCodes.ok : exitCodes.unreachable;
}
