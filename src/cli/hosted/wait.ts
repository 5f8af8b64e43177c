import { setTimeout as delay } from 'node:timers/promises';
import type { HostedLine, HostedView } from '../../api/hosted-views.ts';
import { callApi } from '../api.ts';
import { readEvents } from '../events.ts';
import { exitCodes } from '../exit.ts';
import type { ApiFlags } from '../options.ts';
import { complain, counted, firstLine, oneLine, print, printJson } from '../output.ts';
import { hostedPath } from './find.ts';
import { endpointOf, hostedNotes, statusText } from './text.ts';

const POLL_MS = 500;
/** States that change without user action. */
const transient = new Set(['starting', 'restarting']);
/** Tools are listed shortly after a server becomes ready; a server without tools is still ready. */
const TOOL_POLLS = 6;
/** The server has 10 s to exit, plus time for the provider. */
const STOP_TIMEOUT_MS = 60_000;

/** Waits until a server is ready or has failed, and shows its log, including the progress of a pull. */
export async function untilSettled(
  server: HostedView,
  { url, json }: ApiFlags,
  since: Date,
): Promise<HostedView> {
  const done = new AbortController();
  const interrupt = () => done.abort();
  process.once('SIGINT', interrupt);
  const show = (type: string, data: unknown) => {
    const { at, line } = data as HostedLine;
    if (type === 'line' && !json && Date.parse(at) >= since.getTime()) complain(`  ${firstLine(line)}`);
  };
  // The status shows the result even if the log fails.
  const log = readEvents(url, `${hostedPath(server, 'logs')}?follow=1`, show, done.signal).catch(() => {});
  let current = server;
  let toolPolls = 0;
  const lacksTools = () => current.status === 'ready' && current.tool_count === null;
  while (
    !done.signal.aborted &&
    (transient.has(current.status) || (lacksTools() && toolPolls++ < TOOL_POLLS))
  ) {
    await delay(POLL_MS, undefined, { signal: done.signal }).catch(() => {});
    if (!done.signal.aborted) current = await callApi<HostedView>(url, 'GET', hostedPath(server));
  }
  process.off('SIGINT', interrupt);
  done.abort();
  await log;
  return current;
}

export async function untilStopped(server: HostedView, url: string): Promise<HostedView> {
  let current = server;
  for (
    const deadline = Date.now() + STOP_TIMEOUT_MS;
    current.status !== 'stopped' && Date.now() < deadline;
  ) {
    await delay(POLL_MS);
    current = await callApi<HostedView>(url, 'GET', hostedPath(server));
  }
  return current;
}

/** Returns the exit code. `advice` is shown on failure. */
export function reportSettled(server: HostedView, { json }: ApiFlags, advice: string): number {
  // A ready server with an error does not run with its latest change.
  const isOk = server.status === 'ready' && server.error === null;
  if (json) printJson(server);
  else if (isOk) print(readyText(server));
  else complain(failureText(server, advice));
  return isOk ? exitCodes.ok : exitCodes.failed;
}

function readyText(server: HostedView): string {
  const { name, provider, tool_count } = server;
  const tools = tool_count === null ? '' : counted(tool_count, 'tool');
  const facts = [provider ?? '', tools, endpointOf(server) ?? ''];
  return `${name} is ready (${facts.filter((fact) => fact !== '').join(', ')})`;
}

function failureText(server: HostedView, advice: string): string {
  const { name, status, error } = server;
  if (transient.has(status))
    return `${name} is still ${statusText(status)}; see: switchboard logs -f ${name}`;
  // An error may list remedies, one per line.
  const reasons = (error ?? '').split('\n').map(oneLine);
  const next = hostedNotes({ ...server, error: null, health: 'ok' }, new Date());
  const notes = [reasons.join('\n  '), next].filter((note) => note !== '').join(' · ');
  return `${name} is ${statusText(status)}${notes === '' ? '' : `: ${notes}`}\n${advice}`;
}
