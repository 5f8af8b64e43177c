import type { ServerEvent, ServerView } from '../../api/views.ts';
import { SwitchboardError } from '../../errors.ts';
import { callApi, projectPath } from '../api.ts';
import { exitCodes } from '../exit.ts';
import { follow } from '../follow.ts';
import { complain, oneLine, printable, printColoured, printJsonLine } from '../output.ts';
import { eventNotes, stateColumn, subjectOf } from '../server/text.ts';

export interface WatchFlags {
  url: string;
  project: string;
  json?: boolean;
}

/** How a server stands when the watching begins: an event without a state before it. */
type WatchEvent = Omit<ServerEvent, 'from'> & { from: ServerEvent['from'] | null };

/** Shows the state of servers, and every change of it, until somebody stops it. */
export async function watch(names: string[], flags: WatchFlags): Promise<number> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  // Whoever read what we print is gone: nobody is left to watch for.
  process.stdout.on('error', () => stop.abort());
  // An event stream cannot say that there is no such project.
  await callApi(flags.url, 'GET', projectPath(flags.project, 'servers'));

  let show = (_event: WatchEvent): void => {};
  const isWatched = ({ name }: ServerView) => names.length === 0 || names.includes(name);
  const take = (type: string, data: unknown) => {
    if (type === 'servers') {
      const { servers } = data as { servers: ServerView[] };
      checkNames(names, servers);
      const watched = servers.filter(isWatched);
      show = flags.json ? (event) => printJsonLine(event) : linePrinter(watched);
      const time = new Date().toISOString();
      for (const server of watched) show({ time, server, replica: null, from: null });
    } else if (type === 'server') {
      const event = data as ServerEvent;
      if (isWatched(event.server)) show(event);
    }
  };
  const { error } = await follow(
    `${flags.url}/api/v1${projectPath(flags.project, 'events')}`,
    take,
    stop.signal,
  );
  if (stop.signal.aborted) return exitCodes.ok;
  const how = error === undefined ? 'has stopped' : `is gone: ${error.message}`;
  complain(`The Switchboard at ${flags.url} ${how}.`);
  return exitCodes.unreachable;
}

function checkNames(names: string[], servers: ServerView[]): void {
  const unknown = names.find((name) => !servers.some((server) => server.name === name));
  if (unknown === undefined) return;
  const known = servers.map(({ name }) => name).join(', ');
  throw new SwitchboardError(
    'not_found',
    `There is no server "${unknown}". ${known === '' ? 'There are none at all.' : `There are: ${known}.`}`,
  );
}

function linePrinter(servers: ServerView[]): (event: WatchEvent) => void {
  const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR;
  const width = Math.max(0, ...servers.map(labelWidth));
  return (event) => printColoured(watchLine(event, width, isColoured));
}

/** Room for the name, and for the number of a replica where there are several. */
function labelWidth({ name, replicas }: ServerView): number {
  return oneLine(name).length + (replicas.length > 1 ? `/${replicas.length}`.length : 0);
}

export function watchLine(event: WatchEvent, width: number, isColoured: boolean): string {
  const { label, state } = subjectOf(event);
  const columns = [
    new Date(event.time).toTimeString().slice(0, 8),
    oneLine(label).padEnd(width),
    stateColumn(state, isColoured),
    printable(eventNotes(event)),
  ];
  return columns.join('  ').trimEnd();
}
