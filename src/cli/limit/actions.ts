import type { LimitView } from '../../api/access-views.ts';
import { apiPath, callApi } from '../api.ts';
import { usageError } from '../exit.ts';
import type { ApiFlags } from '../options.ts';
import { counted, printList, printResult } from '../output.ts';
import { removeConfirmed } from '../prompt.ts';
import { onlyKey } from '../subject.ts';

interface LimitFlags extends ApiFlags {
  perMinute?: number;
  concurrent?: number;
  for?: string;
  project?: string;
  tool?: string;
  shared?: boolean;
}

export async function listLimits(flags: ApiFlags & { project?: string }): Promise<void> {
  const { limits } = await callApi<{ limits: LimitView[] }>(flags.url, 'GET', '/limits', {
    query: { project: flags.project },
  });
  printList('limits', limits, limitRow, flags);
}

export async function setLimit(flags: LimitFlags): Promise<void> {
  const { perMinute, concurrent, tool } = flags;
  if (perMinute === undefined && concurrent === undefined) {
    throw usageError('Say what is limited: --per-minute, --concurrent, or both.');
  }
  const principal = flags.for === undefined ? undefined : onlyKey(flags.for, '--for');
  const body = {
    ...{ per_minute: perMinute, concurrent, principal, project: flags.project },
    ...(tool === undefined ? {} : readTool(tool)),
    ...(flags.shared ? { shared: true } : {}),
  };
  const limit = await callApi<LimitView>(flags.url, 'POST', '/limits', { body });
  printResult(limit, `set limit ${limit.id}: ${limitText(limit)}`, flags);
}

export function removeLimit(id: string, flags: ApiFlags & { yes?: boolean }): Promise<number> {
  return removeConfirmed(flags, `Remove the limit ${id}?`, apiPath('limits', id), 'limit', id);
}

/** Tools may have slashes in their names; servers do not. */
function readTool(text: string): { server: string; tool: string } {
  const [, server, tool] = /^([^/]+)\/(.+)$/s.exec(text) ?? [];
  if (server === undefined || tool === undefined) {
    throw usageError('--tool takes server/tool, such as search/web, search/* or */delete_*.');
  }
  return { server, tool };
}

function limitText(limit: LimitView): string {
  const [, ...parts] = limitRow(limit);
  return parts.filter((part) => part !== '').join(' ');
}

function limitRow(limit: LimitView): string[] {
  const { id, principal, project, server, tool, per_minute, concurrent, shared } = limit;
  const amounts = [
    ...(per_minute === null ? [] : [`${per_minute} per minute`]),
    ...(concurrent === null ? [] : [`${counted(concurrent, 'call')} at a time`]),
  ];
  const whom = principal === null ? (shared ? 'all together' : 'each') : principal.name;
  const place = project === null ? 'in all projects' : `in ${project.name}`;
  const what = server === null && tool === null ? '' : `calls of ${server ?? '*'}/${tool ?? '*'}`;
  return [id, amounts.join(', '), `for ${whom}`, place, what];
}
