import type { SoakReport } from './soak.ts';

/** The counts of a run as a small table. */
export function formatReport(report: SoakReport): string {
  const { verdict, before, after, rss, live } = report;
  const { calls, answered, failed } = verdict.total;
  const rows: [string, string][] = [
    ['run', `seed ${report.seed}, ${report.seconds} s, ${report.clients} clients, ${report.servers} servers`],
    ['calls', `${calls}: ${answered} answered, ${failed} failed, ${verdict.cancelled} cancelled`],
    ['lists', String(verdict.lists)],
    ['errors', listed(verdict.errors)],
    ['faults', listed(report.faults)],
    ['restarts', String(report.restarts)],
    ['memory', `${mb(rss.first)} first, ${mb(rss.second)} second quarter, ${mb(rss.last)} last quarter`],
    [
      'in use',
      `${mb(before.liveMegabytes)} before, ${mb(live.second)} second quarter, ${mb(live.last)} last quarter, ${mb(after.liveMegabytes)} after`,
    ],
    ['open files', `${before.openFiles} → ${after.openFiles}`],
    ['children', `${before.children} → ${after.children}`],
    ['timers', `${before.resources.Timeout ?? 0} → ${after.resources.Timeout ?? 0}`],
    ...[...verdict.byTarget].map(([prefix, tally]): [string, string] => [
      `  ${prefix.replace(/__$/, '')}`,
      `${tally.calls} calls, ${tally.answered} answered, ${tally.failed} failed`,
    ]),
    ['violations', String(verdict.violationCount)],
  ];
  const width = Math.max(...rows.map(([title]) => title.length));
  const table = rows.map(([title, text]) => `${title.padEnd(width)}  ${text}`);
  return [...table, ...verdict.violations.map((violation) => `  ! ${violation}`)].join('\n');
}

function listed(counts: ReadonlyMap<string, number>): string {
  if (counts.size === 0) return 'none';
  return [...counts].map(([what, count]) => `${what}: ${count}`).join(', ');
}

function mb(megabytes: number): string {
  return `${megabytes.toFixed(1)} MB`;
}
