/** Our goals for cost, checked in every run. */
import { againstLegacy } from './era-table.ts';
import type { Era } from './eras.ts';
import { pairedRatio, type Ratio, type Samples } from './measure.ts';
import type { Results } from './report.ts';
import { ratioCell } from './tables.ts';
import type { VariantName } from './variants.ts';

export interface Verdict {
  goal: string;
  limit: string;
  measured: string;
  outcome: 'ok' | 'MISSED' | 'not measured';
}

const SMALL_CALL = 'call/200B/16';
const LARGE_CALL = 'call/1MB/16';
const SMALL_ERA_CALL = 'eras/200B/16';

export function judge(results: Results): Verdict[] {
  const inCall = (scenario: string) => results.calls.find(({ name }) => name === scenario)?.samples;
  const small = inCall(SMALL_CALL);
  const large = inCall(LARGE_CALL);
  const eras = results.eras.find(({ name }) => name === SMALL_ERA_CALL)?.samples;
  const inLargestList = (client: Era) =>
    results.lists.find(({ toolCount, era }) => toolCount === 10_000 && era === client)?.samples;
  const sessions = results.sessions.find(({ variant }) => variant === 'switchboard-stdio');
  const perSession = sessions?.steps.at(-1)?.bytesPerSession;
  const hosted = results.hosting.find(({ provider }) => provider === 'process')?.bytesPerServer;
  return [
    ratioAtMost('call over stdio, 200 B', 1.6, ratio(small, 'switchboard-stdio', 'direct')),
    ratioAtMost('call over HTTP, 200 B', 2.4, ratio(small, 'switchboard-http', 'direct')),
    ratioAtMost('call over stdio, 1 MB', 6, ratio(large, 'switchboard-stdio', 'direct')),
    ratioAtMost('call over HTTP, 1 MB', 6, ratio(large, 'switchboard-http', 'direct')),
    ratioAtLeast('less than supergateway', 8, ratio(small, 'supergateway', 'switchboard-stdio')),
    ratioAtLeast('less than mcp-proxy', 8, ratio(small, 'mcp-proxy', 'switchboard-stdio')),
    ratioAtLeast("less than mcp-hub's REST call", 2, ratio(small, 'mcp-hub', 'switchboard-stdio')),
    ratioAtMost(
      'modern call over stdio against a legacy one, 200 B',
      1.25,
      eras && againstLegacy(eras, 'switchboard-modern-stdio'),
    ),
    ratioAtMost(
      'modern call over HTTP against a legacy one, 200 B',
      1.25,
      eras && againstLegacy(eras, 'switchboard-modern-http'),
    ),
    ratioAtMost('list of 10,000 tools', 1.5, ratio(inLargestList('legacy'), 'switchboard-http', 'direct')),
    ratioAtMost(
      'list of 10,000 tools, modern client',
      1.5,
      ratio(inLargestList('modern'), 'switchboard-modern-http', 'direct-modern'),
    ),
    ratioAtMost('cost of a key, 200 B', 1.02, ratio(small, 'switchboard-key', 'switchboard-stdio')),
    ratioAtMost(
      'cost of call records, 200 B',
      1.05,
      ratio(small, 'switchboard-stdio', 'switchboard-no-database'),
    ),
    amountAtMost('open idle session with its stream', 30, 'kB', perSession && perSession / 1e3),
    amountAtMost('idle process', 90, 'MB', sessions && sessions.idleBytes / 1e6),
    amountAtMost('hosted server, one of 50', 500, 'kB', hosted && hosted / 1e3),
  ];
}

function ratio(samples: Samples | undefined, name: VariantName, base: VariantName): Ratio | undefined {
  return samples === undefined ? undefined : pairedRatio(samples, name, base);
}

function ratioAtMost(goal: string, limit: number, measured: Ratio | undefined): Verdict {
  return verdict(goal, `≤ ${limit}×`, ratioCell(measured), measured && measured.median <= limit);
}

function ratioAtLeast(goal: string, limit: number, measured: Ratio | undefined): Verdict {
  return verdict(goal, `≥ ${limit}×`, ratioCell(measured), measured && measured.median >= limit);
}

function amountAtMost(goal: string, limit: number, unit: string, measured: number | undefined): Verdict {
  const shown = measured === undefined ? '–' : `${measured.toFixed(1)} ${unit}`;
  return verdict(goal, `≤ ${limit} ${unit}`, shown, measured === undefined ? undefined : measured <= limit);
}

function verdict(goal: string, limit: string, measured: string, isReached: boolean | undefined): Verdict {
  const outcome = isReached === undefined ? 'not measured' : isReached ? 'ok' : 'MISSED';
  return { goal, limit, measured, outcome };
}
