import { setTimeout as delay } from 'node:timers/promises';
import { callApi } from './api.ts';
import { exitCodes } from './exit.ts';
import { follow } from './follow.ts';
import { type HostFlags, newHosted } from './host-flags.ts';
import { hostedPath } from './hosted-place.ts';
import { hostedNotes, statusText } from './hosted-text.ts';
import { complain, counted, oneLine, print, printJson, tellMoved } from './output.ts';
import type { HostedView } from './views.ts';

interface Flags extends HostFlags {
  url: string;
  detach?: boolean;
  json?: boolean;
}

const POLL_MS = 500;
/** It becomes ready out of these; all others last until somebody does something. */
const passing = new Set(['starting', 'restarting']);
/** Its tools are listed a moment after it is ready; one that does not list them is ready all the same. */
const TOOL_POLLS = 6;

/** Runs an image as a server, and waits until it is ready or cannot be. */
export async function host(image: string | undefined, command: string[], flags: Flags): Promise<number> {
  const body = newHosted(image, command, flags);
  const server = await callApi<HostedView>(flags.url, 'POST', '/mcp/servers', { body });
  if (!flags.json) complain(`added hosted server ${server.name} to project ${server.project}`);
  tellMoved(server);
  const settled = flags.detach ? server : await waitFor(server, flags);
  if (flags.json) printJson(settled);
  if (flags.detach) return exitCodes.ok;
  const isReady = settled.status === 'ready';
  if (!flags.json) (isReady ? print : complain)(isReady ? readyText(settled) : failureText(settled));
  return isReady ? exitCodes.ok : exitCodes.failed;
}

/** Shows its log meanwhile: there the progress of a pull is too. */
async function waitFor(server: HostedView, { url, json }: Flags): Promise<HostedView> {
  const done = new AbortController();
  const interrupt = () => done.abort();
  process.once('SIGINT', interrupt);
  const show = (type: string, data: unknown) => {
    if (type === 'line' && !json) complain(`  ${oneLine((data as { line: string }).line)}`);
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

function readyText({ name, provider, tool_count, url }: HostedView): string {
  const facts = [provider ?? '', tool_count === null ? '' : counted(tool_count, 'tool'), url ?? ''];
  return `${name} is ready (${facts.filter((fact) => fact !== '').join(', ')})`;
}

function failureText(server: HostedView): string {
  const { name, status, error } = server;
  if (passing.has(status)) return `${name} is still ${statusText(status)}; see: switchboard logs -f ${name}`;
  // An error may be a list of what to do, which is read line by line.
  const why = (error ?? '').split('\n').map(oneLine);
  const next = hostedNotes({ ...server, error: null }, new Date());
  const notes = [why.join('\n  '), next].filter((note) => note !== '').join(' · ');
  return [
    `${name} is ${statusText(status)}${notes === '' ? '' : `: ${notes}`}`,
    `It stays registered; see: switchboard logs ${name}, switchboard rm ${name}`,
  ].join('\n');
}
