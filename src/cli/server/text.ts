import { styleText } from 'node:util';
import type { ServerEvent, ServerView } from '../../api/views.ts';
import { offerText, oneLine } from '../output.ts';

type State = ServerView['state'];
type Change = Omit<ServerEvent, 'from'>;
type Condition = Pick<ServerView, 'state' | 'since' | 'error' | 'next_try'>;

/** The server, or one of several replicas, that an event is about. */
interface Subject extends Condition {
  /** The server's name, with `/N` for a replica. */
  label: string;
}

export const marks: Record<State, string> = {
  ready: '●',
  starting: '◐',
  degraded: '◐',
  backing_off: '◐',
  breaker_open: '◐',
  failed: '✗',
  idle: '○',
  stopped: '○',
  disabled: '○',
};

const colours: Record<State, 'green' | 'yellow' | 'red' | 'gray'> = {
  ready: 'green',
  starting: 'yellow',
  degraded: 'yellow',
  backing_off: 'yellow',
  breaker_open: 'red',
  failed: 'red',
  idle: 'gray',
  stopped: 'gray',
  disabled: 'gray',
};

const STATE_WIDTH = 'breaker open'.length;

export function stateText(state: State): string {
  return state.replaceAll('_', ' ');
}

export function stateColumn(state: State, isColoured: boolean): string {
  const text = stateText(state).padEnd(STATE_WIDTH);
  return isColoured ? styleText(colours[state], text, { validateStream: false }) : text;
}

export function subjectOf({ server, replica }: Change): Subject {
  const changed = server.replicas.find((candidate) => candidate.replica === replica);
  return changed === undefined
    ? { ...server, label: server.name }
    : { ...changed, label: `${server.name}/${replica}` };
}

/** The details of an event besides the new state. */
export function eventNotes(event: Change): string {
  const { server, replica } = event;
  const subject = subjectOf(event);
  const now = new Date(event.time);
  // The reason was already shown when the server was lost.
  const why = subject.state === 'starting' ? '' : reason(subject);
  if (replica !== null) return joined([why, nextTry(subject, now)]);
  const offer =
    subject.state === 'ready'
      ? offerText({
          tools: server.tool_count,
          resources: server.resource_count,
          prompts: server.prompt_count,
        })
      : subject.state === 'idle'
        ? whenStarted(server)
        : '';
  return joined([offer, replicasReady(server), why, nextTry(subject, now)]);
}

function whenStarted({ startup, tool_count }: ServerView): string {
  if (tool_count !== null) return 'starts on next use';
  return startup === 'lazy' ? 'starts on first use' : 'starts in its turn';
}

/** The details of a server besides its state and tools. */
export function serverNotes(server: ServerView, now: Date): string {
  const group = server.group === null ? '' : `group ${server.group}`;
  const warning = oneLine(server.warning ?? '');
  return joined([group, replicasReady(server), load(server), reason(server), nextTry(server, now), warning]);
}

function replicasReady({ replicas }: ServerView): string {
  if (replicas.length < 2) return '';
  const ready = replicas.filter(({ state }) => state === 'ready').length;
  return `${ready} of ${replicas.length} replicas ready`;
}

function load({ in_flight, queued }: ServerView): string {
  const parts = [in_flight > 0 ? `${in_flight} running` : '', queued > 0 ? `${queued} waiting` : ''];
  return parts.filter((part) => part !== '').join(', ');
}

function reason({ error }: Condition): string {
  return oneLine(error ?? '');
}

function nextTry({ next_try }: Condition, now: Date): string {
  if (next_try === null) return '';
  const seconds = Math.ceil((Date.parse(next_try) - now.getTime()) / 1_000);
  if (seconds <= 0) return 'next try now';
  return `next try in ${seconds <= 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`}`;
}

function joined(notes: string[]): string {
  return notes.filter((note) => note !== '').join(' · ');
}
