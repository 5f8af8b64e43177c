/** What changed since an older build of Switchboard, which took part in the same cycles. */
import { pairedRatio, type Samples } from './measure.ts';
import { microsecondCell, ratioCell, type Table } from './tables.ts';
import { beforeOf, eraNames } from './variants.ts';

interface Measured {
  name: string;
  samples: Samples;
}

export function comparisonTable(scenarios: Measured[]): Table {
  return {
    title: 'Compared with the older build',
    explanation:
      'CPU of the process per request, divided by that of the older build in the same cycle; in brackets the quartiles of the cycles.',
    columns: ['scenario', 'variant', 'before', 'now', 'now ÷ before'],
    rows: scenarios.flatMap(({ name: scenario, samples }) =>
      eraNames.flatMap((name) => {
        const before = beforeOf(name);
        const ratio = pairedRatio(samples, name, before);
        if (ratio === undefined) return [];
        const spent = [microsecondCell(samples, before), microsecondCell(samples, name)];
        return [[scenario, name, ...spent, ratioCell(ratio)]];
      }),
    ),
  };
}
