import { setTimeout as delay } from 'node:timers/promises';
import type { HostedLine, HostedView } from '../../api/hosted-views.ts';
import { callApi } from '../api.ts';
import { exitCodes } from '../exit.ts';
import { follow } from '../follow.ts';
import { complain, counted, firstLine, oneLine, print, printJson } from '../output.ts';
import { hostedPath } from './find.ts';
import { endpointOf, hostedNotes, statusText } from './text.ts';

interface Flags {
  url: string;
  json?: boolean;
}

const POLL_MS = 500;
/** It becomes ready out of these; all others last until somebody does something. */
const passing = new Set(['starting', 'restarting']);
/** Its tools are listed a moment after it is ready; one that does not list them is ready all the same. */
const TOOL_POLLS = 6;
/** It has 10 s to end, and the provider some more. */
const STOP_MS = 60_000;

/** Waits until it is ready or cannot be, and shows its log since then meanwhile: there the progress of a pull is too. */
export async function untilSettled(
  server: HostedView,
  { url, json }: Flags,
  since: Date,
): Promise<HostedView> {
  const done = new AbortController();
  const interrupt = () => done.abort();
  process.once('SIGINT', interrupt);
  const show = (type: string, data: unknown) => {
    const { at, line } = data as HostedLine;
    if (type === 'line' && !json && Date.parse(at) >= since.getTime()) complain(`  ${firstLine(line)}`);
  };
  // Where it cannot be followed the status still says how it went.
  const log = follow(`${url}/api/v1${hostedPath(server, 'logs')}?follow=1`, show, done.signal).catch(
    () => {},
  );
  let current = server;
  let toolPolls = 0;
  const lacksTools = () => current.status === 'ready' && current.tool_count === null;
  while (
    !done.signal.aborted &&
    (passing.has(current.status) || (lacksTools() && toolPolls++ < TOOL_POLLS))
  ) {
    await delay(POLL_MS, undefined, { signal: done.signal }).catch(() => {});
    if (!done.signal.aborted) current = await callApi<HostedView>(url, 'GET', hostedPath(server));
  }
  process.off('SIGINT', interrupt);
  done.abort();
  await log;
  return current;
}

/** Waits until nothing of it runs any more. */
export async function untilStopped(server: HostedView, url: string): Promise<HostedView> {
  let current = server;
  for (const deadline = Date.now() + STOP_MS; current.status !== 'stopped' && Date.now() < deadline; ) {
    await delay(POLL_MS);
    current = await callApi<HostedView>(url, 'GET', hostedPath(server));
  }
  return current;
}

/** Says how it went. `advice` is for one that is not as it should be. */
export function tellSettled(server: HostedView, { json }: Flags, advice: string): number {
  // One that is ready and has an error could not be made what it was changed to.
  const isRight = server.status === 'ready' && server.error === null;
  if (json) printJson(server);
  else if (isRight) print(readyText(server));
  else complain(failureText(server, advice));
  return isRight ? exitCodes.ok : exitCodes.failed;
}

function readyText(server: HostedView): string {
  const { name, provider, tool_count } = server;
  const tools = tool_count === null ? '' : counted(tool_count, 'tool');
  const facts = [provider ?? '', tools, endpointOf(server) ?? ''];
  return `${name} is ready (${facts.filter((fact) => fact !== '').join(', ')})`;
}

function failureText(server: HostedView, advice: string): string {
  const { name, status, error } = server;
  if (passing.has(status)) return `${name} is still ${statusText(status)}; see: switchboard logs -f ${name}`;
  // An error may be a list of what to do, which is read line by line.
  const why = (error ?? '').split('\n').map(oneLine);
  const next = hostedNotes({ ...server, error: null }, new Date());
  const notes = [why.join('\n  '), next].filter((note) => note !== '').join(' · ');
  return `${name} is ${statusText(status)}${notes === '' ? '' : `: ${notes}`}\n${advice}`;
}
