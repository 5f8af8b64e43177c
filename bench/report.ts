/** Shows the results as tables: for the terminal, for docs/benchmark.md, and raw. */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { comparisonTable } from './comparison.ts';
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
import { markdownTable, microsecondCell, type Table, textTable } from './tables.ts';
import { callNames, directOf, type VariantName } from './variants.ts';

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
    'The measure is CPU time of the gateway process per completed call (the server behind it does not count),',
    'divided by the CPU time of the same server called directly. All variants stay running and are loaded in turn',
    `for a quarter of a second each; a ratio is the median of ${results.cycles} such cycles. Microseconds differ`,
    'between machines and moments, the ratios much less. `npm run bench -- --against FOLDER` lets an older build, in a',
    'built clone in that folder, take its turns in the same cycles, and shows what a call costs now for each unit before.',
    '',
    `Beside it stand ${peerVersions()}, in front of the same stdio server: supergateway with`,
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
      'CPU of the process per tools/call of the legacy era, against direct; in brackets microseconds, and calls per second.',
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
      'CPU of the process per tools/list, against a plain node:http server that sends the same bytes.',
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
      'Resident memory of the idle process with one server, and what each open session with its stream adds (with the processes started for it).',
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
    explanation: 'From starting the process until the tools of its one server are listed.',
    columns: ['', 'first list'],
    rows: starts.map(({ variant, milliseconds }) => [variant, `${Math.round(milliseconds)} ms`]),
  };
}

function hostingTable(hosting: HostingResult[]): Table {
  return {
    title: 'Hosting',
    explanation:
      'Servers that Switchboard runs itself, all started at once when it is started, on all CPUs: until all run, until the tools of all are known, and what they add to the resident memory of Switchboard itself, all together and divided by their number.',
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

function goalTable(verdicts: Verdict[]): Table {
  return {
    title: 'Goals',
    explanation:
      'Calls at 16 concurrent, by clients and servers of the legacy era where nothing else is said; "less than" compares calls of 200 B over stdio. In brackets the quartiles of the cycles.',
    columns: ['goal', 'limit', 'measured', ''],
    rows: verdicts.map(({ goal, limit, measured, outcome }) => [goal, limit, measured, outcome]),
  };
}
