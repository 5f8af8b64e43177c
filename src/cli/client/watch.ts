import type { ServerEvent, ServerView } from '../../api/views.ts';
import { SwitchboardError } from '../../errors.ts';
import { projectPath } from '../api.ts';
import { readEvents } from '../events.ts';
import { exitCodes } from '../exit.ts';
import type { ProjectFlags } from '../options.ts';
import { complain, oneLine, printable, printColoured, printJsonLine } from '../output.ts';
import { eventNotes, stateColumn, subjectOf } from '../server/text.ts';

/** The first event of each server has no previous state. */
type WatchEvent = Omit<ServerEvent, 'from'> & { from: ServerEvent['from'] | null };

/** Shows server states and every change until Ctrl-C. */
export async function watch(names: string[], flags: ProjectFlags): Promise<number> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  // The reader of stdout has closed it.
  process.stdout.on('error', () => stop.abort());

  let show = (_event: WatchEvent): void => {};
  const isWatched = ({ name }: ServerView) => names.length === 0 || names.includes(name);
  const onEvent = (type: string, data: unknown) => {
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
  const { error } = await readEvents(flags.url, projectPath(flags.project, 'events'), onEvent, stop.signal);
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
    `There is no server "${unknown}". ${known === '' ? 'There are no servers.' : `There are: ${known}.`}`,
  );
}

function linePrinter(servers: ServerView[]): (event: WatchEvent) => void {
  const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR;
  const width = Math.max(0, ...servers.map(labelWidth));
  return (event) => printColoured(watchLine(event, width, isColoured));
}

/** Leaves room for the replica's number if there are several. */
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
