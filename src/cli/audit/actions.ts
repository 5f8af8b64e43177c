import { setTimeout as delay } from 'node:timers/promises';
import type { AuditCheck, AuditEntry } from '../../api/access-views.ts';
import { KEY_PREFIX } from '../../identity/keys.ts';
import { callApi, projectPath } from '../api.ts';
import { exitCodes } from '../exit.ts';
import { withKey } from '../key/reference.ts';
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
  limit?: number;
  follow?: boolean;
}

interface AuditPage {
  entries: AuditEntry[];
  next_cursor: string | null;
}

/** The API's maximum. */
const PAGE = 500;
/** Of entries that are shown. */
const DEFAULT_LIMIT = 50;
const POLL_MS = 1_000;
/** The whole log is read. */
const VERIFY_TIMEOUT_MS = 10 * 60_000;
const EXPORT_TIMEOUT_MS = 24 * 60 * 60_000;
/** Of those whom the log shows, but who are no keys. */
const actorIds = new Set(['local', 'system', 'unknown']);
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Shows entries of the audit log, newest last. */
export async function audit(given: AuditFlags): Promise<void> {
  const flags = await withKeyId(given);
  if (flags.json && flags.limit === undefined && !flags.follow) {
    await exportAll(flags);
    return;
  }
  const found = await newest(flags, flags.limit ?? DEFAULT_LIMIT);
  if (found.length === 0) await checkNames(flags);
  const widths: number[] = [];
  const show = (entries: AuditEntry[]) => {
    if (flags.json) entries.forEach(printJsonLine);
    else if (entries.length > 0) print(listTable(entries.map(auditRow), widths));
  };
  if (found.length === 0 && !flags.json && !flags.follow) print('no entries');
  show(found.toReversed());
  if (flags.follow) await follow(flags, found[0]?.seq, show);
}

/** A public id stands for its key. */
async function withKeyId(flags: AuditFlags): Promise<AuditFlags> {
  const { url, principal } = flags;
  if (principal?.startsWith(KEY_PREFIX) !== true) return flags;
  return withKey(url, principal, async (id) => ({ ...flags, principal: id }));
}

/** All pages at once, oldest first. */
async function exportAll(flags: AuditFlags): Promise<void> {
  let isEmpty = true;
  await callApi(flags.url, 'GET', '/audit', {
    query: { ...filterOf(flags), format: 'jsonl' },
    timeoutMs: EXPORT_TIMEOUT_MS,
    onLine(entry) {
      isEmpty = false;
      printJsonLine(entry);
    },
  });
  if (isEmpty) await checkNames(flags);
}

/** The API also takes ids of what is gone, so it finds nothing for a misspelt name. */
async function checkNames({ url, project, principal }: AuditFlags): Promise<void> {
  if (project !== undefined && !uuid.test(project)) await callApi(url, 'GET', projectPath(project));
  if (principal === undefined || actorIds.has(principal) || uuid.test(principal)) return;
  // Unlike the list of keys, it knows keys of elsewhere that may do something here.
  await callApi(url, 'GET', '/can', { query: { principal, action: 'see', project } });
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
  const found: AuditEntry[] = [];
  let cursor: string | undefined;
  do {
    const size = String(Math.min(limit - found.length, after === 0 ? PAGE : 100));
    const page = await callApi<AuditPage>(flags.url, 'GET', '/audit', {
      query: { ...filterOf(flags), limit: size, cursor },
    });
    found.push(...page.entries.filter(({ seq }) => seq > after));
    cursor = page.entries.some(({ seq }) => seq <= after) ? undefined : (page.next_cursor ?? undefined);
  } while (cursor !== undefined && found.length < limit);
  return found;
}

function filterOf({ project, principal, action, outcome, since, until }: AuditFlags) {
  return { project, principal, action, outcome, since, until };
}
