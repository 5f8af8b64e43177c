/** Draws docs/benchmark.svg: CPU per call relative to a direct call, one group of bars per size of result. */
import { againstDirect } from './era-table.ts';
import { pairedRatio } from './measure.ts';
import type { Results } from './report.ts';
import type { CallResult } from './scenarios.ts';
import { arrangementOf, callNames, eraNames, isPeer } from './variants.ts';

const CHART_CONCURRENCY = 16;
/** One group shows the cost of the eras: in larger results, their size hides it. */
const ERA_PAYLOAD = '200B';
const WIDTH = 760;
const LABEL_WIDTH = 170;
const VALUE_WIDTH = 70;
const BAR_HEIGHT = 18;
const BAR_PITCH = 24;
const GROUP_HEAD = 34;
const CHART_HEAD = 44;
const AXIS_HEIGHT = 30;

interface Bar {
  label: string;
  ratio: number;
  kind: 'direct' | 'ours' | 'peer';
}

interface Group {
  title: string;
  bars: Bar[];
}

export function chart(results: Results): string {
  const groups = [
    ...results.calls.filter(({ concurrency }) => concurrency === CHART_CONCURRENCY).map(callGroup),
    ...results.eras.filter(({ payload }) => payload === ERA_PAYLOAD).map(eraGroup),
  ];
  const largest = Math.max(10, ...groups.flatMap(({ bars }) => bars.map(({ ratio }) => ratio)));
  const smallest = Math.min(0.7, ...groups.flatMap(({ bars }) => bars.map(({ ratio }) => ratio * 0.9)));
  const plotWidth = WIDTH - LABEL_WIDTH - VALUE_WIDTH;
  const scale = (ratio: number) => (Math.log(ratio / smallest) / Math.log(largest / smallest)) * plotWidth;

  const shapes: string[] = [];
  let top = CHART_HEAD;
  for (const { title, bars } of groups) {
    shapes.push(text(LABEL_WIDTH, top + 22, title, 'group'));
    top += GROUP_HEAD;
    for (const { label, ratio, kind } of bars) {
      const width = Math.max(2, scale(ratio));
      const middle = top + BAR_HEIGHT / 2 + 4;
      shapes.push(text(LABEL_WIDTH - 8, middle, label, 'name'));
      shapes.push(
        `<rect class="${kind}" x="${LABEL_WIDTH}" y="${top}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>`,
      );
      shapes.push(text(LABEL_WIDTH + width + 6, middle, `${ratio.toFixed(ratio < 10 ? 2 : 0)}×`, 'value'));
      top += BAR_PITCH;
    }
  }
  const grid = ticks(smallest, largest).flatMap((tick) => {
    const x = LABEL_WIDTH + scale(tick);
    return [
      `<line class="grid" x1="${x.toFixed(1)}" x2="${x.toFixed(1)}" y1="${CHART_HEAD}" y2="${top}"/>`,
      text(x, top + 16, `${tick}×`, 'tick'),
    ];
  });
  return document(top + AXIS_HEIGHT, [
    text(8, 20, `CPU of the gateway process per tools/call, against the server called directly`, 'title'),
    text(8, 37, `${CHART_CONCURRENCY} calls in flight, logarithmic, shorter is better`, 'subtitle'),
    ...grid,
    ...shapes,
  ]);
}

function ticks(smallest: number, largest: number): number[] {
  return [1, 2, 5, 10, 20, 50, 100, 200, 500].filter((tick) => tick >= smallest && tick <= largest);
}

function callGroup({ payload, samples }: CallResult): Group {
  const bars = callNames.flatMap((name): Bar[] => {
    const ratio = pairedRatio(samples, name, 'direct')?.median;
    if (ratio === undefined) return [];
    return [{ label: name, ratio, kind: name === 'direct' ? 'direct' : isPeer(name) ? 'peer' : 'ours' }];
  });
  return { title: `results of ${spaced(payload)}`, bars };
}

/** Relative to the direct server of the client's era. */
function eraGroup({ payload, samples }: CallResult): Group {
  const bars = eraNames.flatMap((name): Bar[] => {
    const ratio = againstDirect(samples, name)?.median;
    const { client, server, transport } = arrangementOf(name);
    return ratio === undefined ? [] : [{ label: `${client} → ${server}, ${transport}`, ratio, kind: 'ours' }];
  });
  return {
    title: `results of ${spaced(payload)}, Switchboard between clients and servers of both eras`,
    bars,
  };
}

function spaced(payload: string): string {
  return payload.replace(/(?=[kM]?B$)/, ' ');
}

function text(x: number, y: number, content: string, kind: string): string {
  return `<text class="${kind}" x="${x.toFixed(1)}" y="${y.toFixed(1)}">${content}</text>`;
}

function document(height: number, shapes: string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="CPU of each gateway process per call, against the server called directly">
<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 14px; }
  .group { font-weight: 600; }
  .name { text-anchor: end; }
  .tick { text-anchor: middle; }
  .subtitle, .tick { fill: #59636e; font-size: 12px; }
  .grid { stroke: #8c959f; stroke-opacity: 0.35; }
  .direct { fill: #8c959f; }
  .ours { fill: #1a7f64; }
  .peer { fill: #c4703a; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .subtitle, .tick { fill: #9198a1; }
    .direct { fill: #6e7781; }
    .ours { fill: #2fbf98; }
    .peer { fill: #d98a55; }
  }
</style>
${shapes.join('\n')}
</svg>
`;
}
