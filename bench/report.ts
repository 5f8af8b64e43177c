/** Writes the results as tables for the terminal and docs/benchmark.md, and as raw JSON. */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { eraTable } from './era-table.ts';
import type { Verdict } from './goals.ts';
import type { HostingResult } from './hosting.ts';
import { median, pairedRatio, type Samples } from './measure.ts';
import {
  type CallResult,
  type ListResult,
  listerOf,
  type SessionsResult,
  type StartResult,
} from './scenarios.ts';
import { markdownTable, microsecondCell, ratioCell, type Table, textTable } from './tables.ts';
import { beforeOf, callNames, directOf, eraNames, type VariantName } from './variants.ts';

export interface Results {
  calls: CallResult[];
  /** Calls between clients and servers of both eras. */
  eras: CallResult[];
  lists: ListResult[];
  sessions: SessionsResult[];
  starts: StartResult[];
  hosting: HostingResult[];
  notes: string[];
  placement: string;
  cycles: number;
  command: string;
}

export function textReport(results: Results, verdicts: Verdict[]): string {
  const parts = tablesOf(results, verdicts).map(
    (table) => `${table.title}\n${table.explanation}\n\n${textTable(table)}`,
  );
  if (results.notes.length > 0) parts.push(`Notes\n${results.notes.map((note) => `- ${note}`).join('\n')}`);
  return `\n${parts.join('\n\n')}\n`;
}

export function markdownReport(results: Results, verdicts: Verdict[]): string {
  const lines = [
    '# Benchmark',
    '',
    `Written by \`${results.command}\` on ${new Date().toISOString().slice(0, 10)}.`,
    `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown CPU'}; ${results.placement}.`,
    '',
    'We measure the CPU time of the gateway process per completed call, without the server behind it,',
    'divided by the CPU time of the same server called directly. All variants keep running and are loaded in turn',
    `for a quarter of a second each; a ratio is the median of ${results.cycles} such cycles. Microseconds vary`,
    'between machines and runs, the ratios much less. `npm run bench -- --against FOLDER` includes an older build, from a',
    'built clone in that folder, in the same cycles, and compares the cost per call.',
    '',
    `Compared with ${peerVersions()}, in front of the same stdio server: supergateway with`,
    'sessions and its default logging, mcp-hub called over its REST interface.',
    '',
    '![CPU per call against a direct call](benchmark.svg)',
  ];
  for (const table of tablesOf(results, verdicts)) {
    lines.push('', `## ${table.title}`, '', table.explanation, '', ...markdownTable(table));
  }
  if (results.notes.length > 0) lines.push('', '## Notes', '', ...results.notes.map((note) => `- ${note}`));
  return `${lines.join('\n')}\n`;
}

function peerVersions(): string {
  const file = new URL('./peers/package.json', import.meta.url);
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as { dependencies: Record<string, string> };
  return Object.entries(manifest.dependencies)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

export function rawReport(results: Results): string {
  return JSON.stringify(
    results,
    (_key, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value),
    2,
  );
}

function tablesOf(results: Results, verdicts: Verdict[]): Table[] {
  const { calls, eras, lists } = results;
  const tables = [callTable(calls), eraTable(eras), listTable(lists), sessionTable(results.sessions)];
  tables.push(startTable(results.starts), hostingTable(results.hosting));
  tables.push(comparisonTable([...calls, ...eras, ...lists]), goalTable(verdicts));
  return tables.filter((table) => table.rows.length > 0);
}

function callTable(calls: CallResult[]): Table {
  const variants = callNames.filter((name) => calls.some(({ samples }) => samples.has(name)));
  return {
    title: 'Calls',
    explanation:
      'CPU of the process per tools/call of the legacy era, relative to a direct call; in brackets microseconds, and calls per second.',
    columns: ['result', 'concurrent', ...variants],
    rows: calls.map(({ payload, concurrency, samples }) => [
      payload,
      String(concurrency),
      ...variants.map((name) => callCell(samples, name)),
    ]),
  };
}

function callCell(samples: Samples, name: VariantName): string {
  const ratio = pairedRatio(samples, name, 'direct');
  const rate = median((samples.get(name) ?? []).map(({ callsPerSecond }) => callsPerSecond));
  if (ratio === undefined || rate === undefined) return '–';
  return `${ratio.median.toFixed(2)}× (${microsecondCell(samples, name)}, ${Math.round(rate)}/s)`;
}

function listTable(lists: ListResult[]): Table {
  return {
    title: 'Lists',
    explanation:
      'CPU of the process per tools/list, relative to a plain node:http server that sends the same bytes.',
    columns: ['tools', 'client', 'plain server', 'Switchboard', 'ratio'],
    rows: lists.map(({ toolCount, era, samples }) => [
      toolCount.toLocaleString('en'),
      era,
      microsecondCell(samples, directOf(era)),
      microsecondCell(samples, listerOf(era)),
      `${pairedRatio(samples, listerOf(era), directOf(era))?.median.toFixed(2) ?? '–'}×`,
    ]),
  };
}

function sessionTable(sessions: SessionsResult[]): Table {
  const counts = [...new Set(sessions.flatMap(({ steps }) => steps.map((step) => step.sessions)))].filter(
    (count) => count > 1,
  );
  counts.sort((left, right) => left - right);
  return {
    title: 'Memory',
    explanation:
      'Resident memory of the idle process with one server, and the memory that each open session with its stream adds, including processes started for it.',
    columns: ['', 'idle', 'one session', ...counts.map((count) => `each of ${count.toLocaleString('en')}`)],
    rows: sessions.map(({ variant, idleBytes, steps }) => [
      variant,
      `${(idleBytes / 1e6).toFixed(0)} MB`,
      ...[1, ...counts].map((count) => {
        const step = steps.find(({ sessions: opened }) => opened === count);
        return step === undefined ? '–' : `${(step.bytesPerSession / 1000).toFixed(1)} kB`;
      }),
    ]),
  };
}

function startTable(starts: StartResult[]): Table {
  return {
    title: 'Start',
    explanation: 'Time from the start of the process until the tools of its one server are listed.',
    columns: ['', 'first list'],
    rows: starts.map(({ variant, milliseconds }) => [variant, `${Math.round(milliseconds)} ms`]),
  };
}

function hostingTable(hosting: HostingResult[]): Table {
  return {
    title: 'Hosting',
    explanation:
      'Servers that Switchboard hosts, all started at once with it, on all CPUs: time until all run, time until the tools of all are known, and the resident memory that they add to Switchboard, in total and per server.',
    columns: ['provider', 'servers', 'all ready', 'all connected', 'memory for all', 'for each'],
    rows: hosting.map(({ provider, servers, readyMs, connectedMs, bytesPerServer }) => [
      provider,
      String(servers),
      `${(readyMs / 1000).toFixed(1)} s`,
      `${(connectedMs / 1000).toFixed(1)} s`,
      `${((bytesPerServer * servers) / 1e6).toFixed(0)} MB`,
      `${(bytesPerServer / 1e3).toFixed(0)} kB`,
    ]),
  };
}

/** Compares with an older build of Switchboard, measured in the same cycles. */
function comparisonTable(scenarios: { name: string; samples: Samples }[]): Table {
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

function goalTable(verdicts: Verdict[]): Table {
  return {
    title: 'Goals',
    explanation:
      '16 calls in flight, clients and servers of the legacy era unless stated otherwise; "less than" compares calls of 200 B over stdio. In brackets the quartiles of the cycles.',
    columns: ['goal', 'limit', 'measured', ''],
    rows: verdicts.map(({ goal, limit, measured, outcome }) => [goal, limit, measured, outcome]),
  };
}
