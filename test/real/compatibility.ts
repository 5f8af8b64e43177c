import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clients, type RealClient } from './clients.ts';
import { type RealServer, servers } from './servers.ts';

const path = join(import.meta.dirname, '../../docs/compatibility.md');

/** Generates docs/compatibility.md. Servers and clients that did not run keep their rows. */
export class Compatibility {
  private readonly rows = new Map<string, string>();

  sawServer(server: RealServer, tools: number): void {
    const { name, package: packageName, version, from, transport, tool, kind } = server;
    const answer = kind === 'result' ? 'a result' : `its own ${kind}`;
    this.rows.set(
      name,
      row(name, `${packageName} ${version}`, from, transport, tools, `\`${tool}\``, answer),
    );
  }

  sawClient({ name, version, shown }: RealClient): void {
    this.rows.set(name, row(name, version, shown));
  }

  page(): string {
    const before = written().split('\n');
    const rowOf = ({ name }: { name: string }) =>
      this.rows.get(name) ?? before.find((line) => line.startsWith(`| ${name} |`)) ?? row(name, 'not seen');
    return [
      ...introduction,
      ...table(['server', 'package', 'from', 'transport', 'tools', 'call', 'answer'], servers.map(rowOf)),
      ...['', '## Clients', '', ...aboutClients, ''],
      ...table(['client', 'version', 'shown'], clients.map(rowOf)),
      ...['', '## Left out', '', ...leftOut, ''],
    ].join('\n');
  }
}

export function written(): string {
  return readFileSync(path, { encoding: 'utf8', flag: 'a+' });
}

export function write(page: string): void {
  writeFileSync(path, page);
}

function table(head: string[], rows: string[]): string[] {
  return [row(...head), row(...head.map(() => '---')), ...rows];
}

function row(...cells: (string | number)[]): string {
  return `| ${cells.join(' | ')} |`;
}

const introduction = [
  '# Compatibility',
  '',
  'Published servers and clients that the tests run against Switchboard. `npm run test:full` runs them all (`test/real`), and fails if this page differs;',
  '`UPDATE_COMPATIBILITY=1` updates it. The versions are those of the lock files in `test/real`.',
  '',
  '## Servers',
  '',
  'All of them run behind one Switchboard and become ready, and one tool of each is called. After a restart of Switchboard, the first list has all of their tools before any of their',
  'processes runs. They have no network: their requests go to a proxy that does not exist. Those that need an account or a browser get none, and return an error.',
  '',
];

const aboutClients = [
  'Each connects to that Switchboard over streamable HTTP, lists the tools of all servers, and calls one.',
];

const leftOut = [
  ...table(
    ['server or client', 'why'],
    [
      row(
        '@supabase/mcp-server-supabase',
        'calls its API before it lists its tools, so it needs a network and an account',
      ),
      row('mcp-server-docker', 'needs Python 3.12; set-up accepts 3.11'),
      row('markitdown-mcp', 'depends on onnxruntime and pandas: too large for a test'),
      row(
        'mcp-server-kubernetes, @sentry/mcp-server, firecrawl-mcp',
        'these three add about 300 MB to the installation',
      ),
      row('@azure/mcp, @wonderwhy-er/desktop-commander', 'not tried'),
      row('Claude Desktop, Cursor, VS Code', 'desktop programs, not available on npm or PyPI'),
    ],
  ),
];
