import { megabytes } from './monitor.ts';
import type { SoakReport } from './soak.ts';

export function formatReport(report: SoakReport): string {
  const { options, verdict, holdings, rss, live } = report;
  const { calls, answered, failed } = verdict.total;
  const { until } = options.load;
  const extent = 'calls' in until ? `${until.calls} calls` : `${until.seconds} s`;
  const rows: [string, string][] = [
    ['run', `seed ${options.seed}, ${extent}, ${options.clients} clients, ${report.servers} servers`],
    ['calls', `${calls}: ${answered} answered, ${failed} failed, ${verdict.cancelled} cancelled`],
    ['lists', String(verdict.lists)],
    ['errors', listed(verdict.errors)],
    ['faults', options.faults ? listed(report.faults) : 'none wanted'],
    ['restarts', String(report.restarts)],
    ['in use', `${megabytes(live)} MB by quarter, after garbage collections`],
    ['resident', `${megabytes(rss)} MB by quarter`],
    ...(holdings === undefined ? [] : compared(holdings)),
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

function compared({ before, after }: NonNullable<SoakReport['holdings']>): [string, string][] {
  return [
    ['before, after', `${megabytes([before.liveMegabytes, after.liveMegabytes])} MB in use`],
    ['open files', `${before.openFiles} → ${after.openFiles}`],
    ['children', `${before.children} → ${after.children}`],
    ['timers', `${before.resources.Timeout ?? 0} → ${after.resources.Timeout ?? 0}`],
  ];
}
