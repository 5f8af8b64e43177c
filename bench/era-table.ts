/** The cost of calls if client or server are of the modern era, or of different eras. */
import { pairedRatio, type Ratio, type Samples } from './measure.ts';
import type { CallResult } from './scenarios.ts';
import { microsecondCell, ratioCell, type Table } from './tables.ts';
import { arrangementOf, type CurrentName, directOf, eraNames } from './variants.ts';

type EraName = (typeof eraNames)[number];

export function eraTable(calls: CallResult[]): Table {
  return {
    title: 'Both eras',
    explanation:
      "The same tools/call with a client or server of the modern era (2026-07-28), relative to a direct call in the client's era, and relative to the same transport with both of the legacy era (2025-11-25).",
    columns: ['result', 'concurrent', 'client', 'server', 'CPU', 'against direct', 'against legacy'],
    rows: calls.flatMap(({ payload, concurrency, samples }) =>
      rowsOf(samples).map((row) => [payload, String(concurrency), ...row]),
    ),
  };
}

function rowsOf(samples: Samples): string[][] {
  const direct = (['legacy', 'modern'] as const).map((era) => [
    ...[era, `${era}, directly`, microsecondCell(samples, directOf(era)), '1.00×', '–'],
  ]);
  const ours = eraNames
    .filter((name) => samples.has(name))
    .map((name) => {
      const { client, server, transport } = arrangementOf(name);
      return [
        ...[client, `${server}, ${transport}`, microsecondCell(samples, name)],
        ...[ratioCell(againstDirect(samples, name)), ratioCell(againstLegacy(samples, name))],
      ];
    });
  return [...direct, ...ours];
}

export function againstDirect(samples: Samples, name: EraName): Ratio | undefined {
  return pairedRatio(samples, name, directOf(arrangementOf(name).client));
}

/** Relative to the same call with client and server of the legacy era; undefined for that call itself. */
export function againstLegacy(samples: Samples, name: EraName): Ratio | undefined {
  const base: CurrentName =
    arrangementOf(name).transport === 'HTTP' ? 'switchboard-http' : 'switchboard-stdio';
  return base === name ? undefined : pairedRatio(samples, name, base);
}
