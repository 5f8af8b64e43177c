import { setTimeout as delay } from 'node:timers/promises';
import type { AuditCheck, AuditEntry } from '../../api/access-views.ts';
import { callApi } from '../api.ts';
import { exitCodes } from '../exit.ts';
import type { ApiFlags } from '../options.ts';
import { complain, listTable, print, printJsonLine } from '../output.ts';
import { auditRow } from './text.ts';

interface AuditFlags extends ApiFlags {
  project?: string;
  principal?: string;
  action?: string;
  outcome?: string;
  since?: string;
  until?: string;
  limit: number;
  follow?: boolean;
}

interface AuditPage {
  entries: AuditEntry[];
  next_cursor: string | null;
}

/** The API's maximum. */
const PAGE = 500;
const POLL_MS = 1_000;
/** The whole log is read. */
const VERIFY_TIMEOUT_MS = 10 * 60_000;

/** Shows entries of the audit log, newest last. */
export async function audit(flags: AuditFlags): Promise<void> {
  const found = await newest(flags, flags.limit);
  const widths: number[] = [];
  const show = (entries: AuditEntry[]) => {
    if (flags.json) entries.forEach(printJsonLine);
    else if (entries.length > 0) print(listTable(entries.map(auditRow), widths));
  };
  if (found.length === 0 && !flags.json && !flags.follow) print('no entries');
  show(found.toReversed());
  if (flags.follow) await follow(flags, found[0]?.seq, show);
}

/** Returns the exit code. */
export async function verify(flags: ApiFlags): Promise<number> {
  const check = await callApi<AuditCheck>(flags.url, 'GET', '/audit/verify', {
    timeoutMs: VERIFY_TIMEOUT_MS,
  });
  const { entries, head, problem } = check;
  if (flags.json) printJsonLine(check);
  else if (problem === null)
    print(`${entries === 1 ? '1 entry' : `${entries} entries`}, none of them changed\nhead ${head}`);
  else complain(`The audit log was changed at entry ${problem.seq}: ${problem.why}`);
  return problem === null ? exitCodes.ok : exitCodes.failed;
}

/** Polls for new entries until Ctrl-C. */
async function follow(
  flags: AuditFlags,
  known: number | undefined,
  show: (entries: AuditEntry[]) => void,
): Promise<void> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  // The reader of stdout has closed it.
  process.stdout.on('error', () => stop.abort());
  let last = known ?? 0;
  for (;;) {
    await delay(POLL_MS, undefined, { signal: stop.signal }).catch(() => {});
    if (stop.signal.aborted) return;
    const fresh = await newest(flags, Number.POSITIVE_INFINITY, last);
    last = fresh[0]?.seq ?? last;
    show(fresh.toReversed());
  }
}

/** Newest first. With `after`, only entries since then. */
async function newest(flags: AuditFlags, limit: number, after = 0): Promise<AuditEntry[]> {
  const { project, principal, action, outcome, since, until } = flags;
  const found: AuditEntry[] = [];
  let cursor: string | undefined;
  do {
    const size = String(Math.min(limit - found.length, after === 0 ? PAGE : 100));
    const page = await callApi<AuditPage>(flags.url, 'GET', '/audit', {
      query: { project, principal, action, outcome, since, until, limit: size, cursor },
    });
    found.push(...page.entries.filter(({ seq }) => seq > after));
    cursor = page.entries.some(({ seq }) => seq <= after) ? undefined : (page.next_cursor ?? undefined);
  } while (cursor !== undefined && found.length < limit);
  return found;
}
