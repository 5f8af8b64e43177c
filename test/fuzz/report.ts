import type { FuzzReport } from './fuzz.ts';

export function formatReport({ seconds, done, outcomes, figures, findings, total }: FuzzReport): string {
  const sum = done.front + done.upstream + done.api;
  const rows: [string, string][] = [
    ['cases', `${sum} in ${seconds.toFixed(1)} s (${(sum / seconds).toFixed()} a second)`],
    ['', `front ${done.front}, upstream ${done.upstream}, api ${done.api}`],
  ];
  if (figures !== undefined) {
    const { before, after, calls, peakMegabytes, longestTurnMs } = figures;
    rows.push(
      ['control', `${calls} calls of a client that behaves`],
      [
        'memory',
        `${mb(before.residentMegabytes)} before, ${mb(after.residentMegabytes)} after, ${mb(peakMegabytes)} at its peak`,
      ],
      ['in use', `${mb(before.liveMegabytes)} before, ${mb(after.liveMegabytes)} after`],
      ['open files', `${before.openFiles} → ${after.openFiles}`],
      ['children', `${before.children} → ${after.children}`],
      ['timers', `${before.resources.Timeout ?? 0} → ${after.resources.Timeout ?? 0}`],
      ['longest turn', `${longestTurnMs.toFixed()} ms of computing`],
    );
  }
  for (const name of ['front', 'upstream', 'api'] as const) {
    const kinds = [...outcomes]
      .filter(([kind]) => kind.startsWith(name))
      .sort((one, other) => other[1] - one[1]);
    if (kinds.length === 0) continue;
    rows.push([name, kinds.map(([kind, count]) => `${kind.slice(name.length + 1)}: ${count}`).join(', ')]);
  }
  rows.push(['found', String(total)]);
  const table = rows.map(([title, text]) => `${title.padEnd(12)}  ${text}`);
  return [...table, ...findings.map((finding) => `  ! ${finding}`)].join('\n');
}

function mb(megabytes: number): string {
  return `${megabytes.toFixed(1)} MB`;
}
