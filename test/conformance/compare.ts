import type { Check } from './run.ts';

type Status = Check['status'];

/** A check that may differ through Switchboard, because it tests the direct connection. */
export interface Exception {
  scenario: string;
  id: string;
  status: Status;
  why: string;
}

/** A check id can occur several times in a scenario; the worst status counts. */
const worstFirst: Status[] = ['FAILURE', 'WARNING', 'SKIPPED', 'SUCCESS', 'INFO'];

/** The checks that succeeded, each named once as `scenario / id`. */
export function passedChecks(checks: Check[]): string[] {
  return [...verdicts(checks)].filter(([, { status }]) => status === 'SUCCESS').map(([name]) => name);
}

/** Every failed check or warning, with its message. */
export function complaints(checks: Check[]): string[] {
  return checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING').map(describe);
}

/** The checks that succeed only directly, and failures under new ids in those scenarios, which explain missing checks. */
export function lostChecks(direct: Check[], through: Check[], exceptions: Exception[] = []): string[] {
  const found = verdicts(through);
  const lost = [...verdicts(direct)].flatMap(([name, { scenario, id, status }]) => {
    if (status !== 'SUCCESS') return [];
    const check = found.get(name);
    if (check?.status === 'SUCCESS') return [];
    if (exceptions.some((one) => nameOf(one) === name && one.status === check?.status)) return [];
    return [check ?? { scenario, id, status: 'missing' as const, message: 'the check was not reported' }];
  });
  const known = verdicts(direct);
  const reasons = through.filter((check) => check.status === 'FAILURE' && !known.has(nameOf(check)));
  return [...lost, ...reasons].map(describe).sort();
}

function verdicts(checks: Check[]): Map<string, Check> {
  const worst = new Map<string, Check>();
  for (const check of checks) {
    const other = worst.get(nameOf(check));
    if (!other || worstFirst.indexOf(check.status) < worstFirst.indexOf(other.status)) {
      worst.set(nameOf(check), check);
    }
  }
  return worst;
}

function nameOf({ scenario, id }: { scenario: string; id: string }): string {
  return `${scenario} / ${id}`;
}

function describe(check: { scenario: string; id: string; status: string; message: string }): string {
  return `${nameOf(check)}: ${check.status}, ${check.message}`;
}
