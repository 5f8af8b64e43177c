import type { CanView } from '../../api/access-views.ts';
import { callApi } from '../api.ts';
import { exitCodes } from '../exit.ts';
import { withKey } from '../key/reference.ts';
import type { ApiFlags } from '../options.ts';
import { oneLine, printResult } from '../output.ts';
import { kindOf } from '../rule/what.ts';
import { onlyKey } from '../subject.ts';

interface CanFlags extends ApiFlags {
  project?: string;
  server?: string;
}

/** Returns the exit code: 0 for yes, 1 for no. */
export async function can(
  principal: string,
  action: string,
  name: string | undefined,
  flags: CanFlags,
): Promise<number> {
  const { url, project, server } = flags;
  const query = { action, project, server, ...(name === undefined ? {} : itemOf(name)) };
  const answer = await withKey(url, onlyKey(principal, 'switchboard can'), (key) =>
    callApi<CanView>(url, 'GET', '/can', { query: { principal: key, ...query } }),
  );
  printResult(answer, answerText(answer), flags);
  return answer.allowed ? exitCodes.ok : exitCodes.failed;
}

/** Tools have no scheme. */
function itemOf(text: string): { kind: string; name: string } {
  const { kind, rest } = kindOf(text);
  return { kind: kind?.kind ?? (/^[a-z][a-z0-9+.-]*:\/\//i.test(rest) ? 'resource' : 'tool'), name: rest };
}

export function answerText({ allowed, role, rule, reason }: CanView): string {
  return [
    `${allowed ? 'yes' : 'no'}: ${oneLine(reason)}`,
    ...(role === null ? [] : [`role: ${role}`]),
    ...(rule === null ? [] : [`rule: ${oneLine(rule.text)} (${rule.id})`]),
  ].join('\n');
}
