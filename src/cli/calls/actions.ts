import { setTimeout as delay } from 'node:timers/promises';
import type { CallList, CallView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { withoutSecret } from '../key/reference.ts';
import type { ProjectFlags } from '../options.ts';
import { complain, listTable, localTime, oneLine, print, printJson, printJsonLine } from '../output.ts';

interface CallsFlags extends ProjectFlags {
  server?: string;
  tool?: string;
  status?: string;
  principal?: string;
  since?: string;
  until?: string;
  limit: number;
  follow?: boolean;
}

/** The API's maximum. */
const PAGE = 500;
const POLL_MS = 1_000;

/** Shows recorded calls, newest last. */
export async function calls(flags: CallsFlags): Promise<void> {
  const { calls: found, dropped } = await newest(flags, flags.limit);
  const widths: number[] = [];
  const show = (list: CallView[]) => print(listTable(list.map(callRow), widths));
  if (dropped > 0) complain(`note: ${dropped} calls were not recorded since Switchboard started`);
  if (flags.follow) {
    const report = flags.json ? (list: CallView[]) => list.forEach(printJsonLine) : show;
    if (found.length > 0) report(found.toReversed());
    await follow(flags, new Set(found.map(({ id }) => id)), report);
  } else if (flags.json) printJson(found);
  else if (found.length === 0) print('no calls');
  else show(found.toReversed());
}

/** Polls for new calls until Ctrl-C. */
async function follow(
  flags: CallsFlags,
  seen: Set<string>,
  report: (list: CallView[]) => void,
): Promise<void> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  // The reader of stdout has closed it.
  process.stdout.on('error', () => stop.abort());
  while (!stop.signal.aborted) {
    await delay(POLL_MS, undefined, { signal: stop.signal }).catch(() => {});
    if (stop.signal.aborted) return;
    const { calls: recent } = await newest(flags, Number.POSITIVE_INFINITY, seen);
    // Records are written in batches after their calls, so new ones are found by id, not by time.
    const fresh = recent.filter(({ id }) => !seen.has(id));
    for (const { id } of fresh) seen.add(id);
    if (fresh.length > 0) report(fresh.toReversed());
  }
}

/** Newest first. With `seen`, paging stops at the first page with a known call. */
async function newest(flags: CallsFlags, limit: number, seen?: Set<string>): Promise<CallList> {
  const found: CallView[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await callApi<CallList>(flags.url, 'GET', projectPath(flags.project, 'calls'), {
      query: {
        server: flags.server,
        tool: flags.tool,
        status: flags.status,
        principal: flags.principal && withoutSecret(flags.principal),
        since: flags.since,
        until: flags.until,
        limit: String(Math.min(limit - found.length, seen === undefined ? PAGE : 100)),
        cursor,
      },
    });
    found.push(...page.calls);
    cursor = page.next_cursor ?? undefined;
    const isKnown = seen?.size === 0 || page.calls.some(({ id }) => seen?.has(id));
    if (cursor === undefined || found.length >= limit || isKnown) {
      return { calls: found, next_cursor: page.next_cursor, dropped: page.dropped };
    }
  }
}

export function callRow(call: CallView): string[] {
  const { server, replica, error } = call;
  return [
    localTime(call.created_at),
    call.status.replaceAll('_', ' '),
    `${server ?? ''}${replica === null ? '' : `/${replica}`}`,
    oneLine(call.tool ?? call.method),
    `${Math.round(call.duration_ms)} ms`,
    `${bytes(call.input_bytes)} → ${bytes(call.output_bytes)}`,
    oneLine(call.principal?.name ?? ''),
    oneLine(call.client ?? ''),
    error === null ? '' : oneLine(`${error.code}: ${error.message}`),
  ];
}

function bytes(count: number): string {
  if (count < 1_000) return `${count} B`;
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)} kB` : `${(count / 1_000_000).toFixed(1)} MB`;
}
