import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Import, importsOf } from './helpers/imports.ts';
import { sourceFiles } from './helpers/source.ts';

/** A folder of src/, or a file directly in it. */
type Unit = string;

interface Rule {
  from: Unit;
  mustNotImport: (target: string, found: Import) => boolean;
  why: string;
}

const rules: Rule[] = [
  only('errors', [], 'everybody uses it, so it knows nobody'),
  only('json', [], 'every folder uses it, so it knows none'),
  only('self-identity', [], 'a name and a version'),
  only('home', ['errors'], 'where files are does not depend on which'),
  only('regular-files', [], 'whoever reads a file of the user uses it'),
  only('private-files', ['errors', 'regular-files'], 'whoever has something to keep to itself uses it'),
  only(
    'identity',
    ['errors', 'private-files', 'config'],
    'who somebody is, and what they may do, does not depend on how they do it',
  ),
  only('config', ['errors', 'regular-files'], 'a configuration is data; what is done with it is for others'),
  only('protocol', ['errors'], 'what messages are does not depend on who sends them'),
  only('catalog', ['errors'], 'a snapshot is data, made from what it is given'),
  only('http', ['protocol', 'errors'], 'reading requests and writing streams does not depend on the route'),
  only(
    'channels',
    ['protocol', 'errors', 'config (types)'],
    'a channel carries messages and does not know for whom',
  ),
  only(
    'upstreams',
    ['channels', 'protocol', 'errors', 'config'],
    'a server as we see it does not know who asks it',
  ),
  only(
    'gateway',
    ['identity', 'upstreams', 'catalog', 'channels', 'http', 'protocol', 'errors', 'config'],
    'what clients see is built on servers and the catalog, never on how it is started or managed',
  ),
  only(
    'hosting',
    ['channels', 'protocol', 'errors', 'config'],
    'it runs servers, and does not know who speaks with them, nor where they are written down',
  ),
  only(
    'store',
    ['errors', 'private-files', 'config', 'identity'],
    'what is kept does not know who keeps it, nor what it is for',
  ),
  only(
    'api',
    [
      ...['chats', 'projects', 'records', 'agent', 'gateway', 'hosting (types)', 'store (types)'],
      ...['upstreams', 'catalog', 'config', 'errors', 'http', 'protocol', 'identity'],
    ],
    'its routes do the work on projects, records and chats, which do not know the API',
  ),
  only(
    'agent',
    ['upstreams', 'catalog', 'channels', 'protocol', 'config', 'errors', 'home', 'self-identity'],
    'an agent is built on servers, in any process; it needs neither the gateway nor a database',
  ),
  only(
    'adk',
    ['agent', 'errors', 'config'],
    'it gives the tools of an agent another shape; how servers are reached is for others',
  ),
  only(
    'projects',
    [
      'gateway',
      'identity',
      'upstreams',
      'catalog',
      'config',
      'errors',
      'hosting',
      'channels (types)',
      'store (types)',
    ],
    'stored configuration made live; who asks for it, and who shows it, is for others',
  ),
  only(
    'records',
    ['gateway', 'upstreams', 'protocol', 'errors', 'store', 'config (types)'],
    'a record is made from what happened, wherever that was',
  ),
  only(
    'chats',
    [
      ...['agent', 'channels', 'projects', 'records', 'gateway', 'upstreams', 'catalog (types)', 'protocol'],
      ...['config', 'errors', 'identity', 'store (types)'],
    ],
    'an agent over the servers of a project; the API shows it',
  ),
  {
    from: 'cli',
    mustNotImport: (target, found) =>
      (['gateway', 'upstreams', 'catalog'].includes(target) &&
        !found.target.startsWith('src/gateway/stdio/')) ||
      (target === 'api' && !found.typeOnly),
    why: 'the command line talks to the running program: of the API it needs the types only',
  },
  ...['protocol', 'catalog'].map((from) => ({
    from,
    mustNotImport: (target: string) =>
      /^(node:)?(fs|net|tls|http|https|http2|dgram|dns|child_process|worker_threads|cluster)(\/|$)/.test(
        target,
      ) || ['pino', 'commander'].includes(target),
    why: 'it is pure: no I/O',
  })),
  {
    from: '*',
    mustNotImport: (target) => target.startsWith('@modelcontextprotocol/'),
    why: 'the SDK validates and rebuilds payloads that must pass as they came; it is a peer in tests',
  },
  {
    from: '*',
    mustNotImport: (target, found) => target === 'cli' && found.file !== 'src/main.ts',
    why: 'the command line is where everything starts: only main.ts may import it',
  },
  {
    from: '*',
    mustNotImport: (target, found) => target === 'app' && !['main', 'cli'].includes(unitOf(found.file)),
    why: 'app.ts knows everyone, so nobody whom it knows may know it',
  },
  {
    from: '*',
    mustNotImport: (target, found) =>
      target === 'hosting' && !['app', 'projects', 'api'].includes(unitOf(found.file)),
    why: 'whoever hosts servers is handed over by app.ts',
  },
  {
    from: '*',
    mustNotImport: (target, found) =>
      target === 'agent' && !['app', 'api', 'chats', 'cli', 'adk'].includes(unitOf(found.file)),
    why: 'agents use the parts of the gateway, so none of those may use an agent',
  },
  {
    from: '*',
    mustNotImport: (target) => target === 'main',
    why: 'main.ts runs the program when it is imported',
  },
  {
    from: '*',
    mustNotImport: (_target, found) => /^(test|bench|scripts|examples)\//.test(found.target),
    why: 'the package has only src/ in it',
  },
];

/** biome.json limits the lines of a function. */
const MAX_LINES = 300;
const GENERATED = '/**\n * This file was generated by ';

const imports = sourceFiles('src')
  .filter(({ path }) => !path.endsWith('.test.ts'))
  .flatMap(({ path, text }) => importsOf(path, text));
const crossing = imports.filter(({ file, target }) => unitOf(file) !== unitOf(target));

describe('architecture', () => {
  it('lets imports point one way only', () => {
    const broken = crossing.flatMap((found) =>
      rules
        .filter(({ from }) => from === '*' || from === unitOf(found.file))
        .filter(({ mustNotImport }) => mustNotImport(unitOf(found.target), found))
        .map(({ why }) => `${describeImport(found)}: ${why}`),
    );
    expect(broken.join('\n')).toBe('');
  });

  it('has a row in the table for every part of src/', () => {
    const units = new Set(sourceFiles('src').map(({ path }) => unitOf(path)));
    const ruled = new Set([...rules.map(({ from }) => from), 'main', 'app']);
    expect([...units].filter((unit) => !ruled.has(unit))).toEqual([]);
  });

  it('has no cycle between the parts of src/', () => {
    expect(findCycle(crossing.filter(isOurs), unitOf)?.map(describeImport)).toBe(undefined);
  });

  it('has no cycle between files, imports of types included', () => {
    expect(findCycle(imports.filter(isOurs), (file) => file)?.map(describeImport)).toBe(undefined);
  });

  it(`has no file of more than ${MAX_LINES} lines, but generated ones`, () => {
    const long = sourceFiles('src')
      .filter(({ path, text }) => !path.endsWith('.test.ts') && !text.startsWith(GENERATED))
      .filter(({ text }) => text.split('\n').length - 1 > MAX_LINES)
      .map(({ path }) => path);
    expect(long).toEqual([]);
  });
});

describe('docs/architecture.md', () => {
  const page = readFileSync(new URL('../docs/architecture.md', import.meta.url), 'utf8');
  const folders = new Set(
    sourceFiles('src').flatMap(({ path }) => (path.split('/').length > 2 ? [unitOf(path)] : [])),
  );

  it('lists every folder of src/', () => {
    const rows = [...sectionOf(page, 'Modules').matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, folder]) => folder);
    expect(rows.toSorted()).toEqual([...folders].toSorted());
  });

  it('draws every import between the folders of src/', () => {
    const edges = crossing.filter(
      ({ file, target }) => folders.has(unitOf(file)) && folders.has(unitOf(target)),
    );
    const lines = [...Map.groupBy(edges, ({ file }) => unitOf(file))].map(([from, found]) => {
      const targets = new Set(found.map(({ target }) => unitOf(target)));
      return `  ${from} --> ${[...targets].toSorted().join(' & ')}`;
    });
    const graph = ['flowchart TD', ...lines.toSorted()].join('\n');
    const drawn = /```mermaid\n(flowchart TD\n[^`]*)\n```/.exec(page)?.[1];
    expect(drawn, `Paste this into the page:\n\n${graph}\n\n`).toBe(graph);
  });

  it('names only classes and files that exist', () => {
    const files = sourceFiles('src');
    const names = [...page.matchAll(/`([A-Z]\w+|[a-z-]+\.ts)`/g)].map(([, name = '']) => name);
    const missing = names.filter((name) =>
      name.endsWith('.ts')
        ? !files.some(({ path }) => path.endsWith(`/${name}`))
        : !files.some(({ text }) => text.includes(`class ${name} `) || text.includes(`interface ${name} `)),
    );
    expect(missing).toEqual([]);
  });
});

function sectionOf(page: string, heading: string): string {
  return page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
}

/** A rule that lets a unit import only these units and packages; `(types)` allows types only. */
function only(from: Unit, allowed: string[], reason: string): Rule {
  const why = `${from} may import ${allowed.length > 0 ? allowed.join(', ') : 'nothing of ours'}: ${reason}`;
  return {
    from,
    mustNotImport: (target, found) =>
      found.target.startsWith('src/') &&
      target !== 'json' &&
      !allowed.includes(target) &&
      !(found.typeOnly && allowed.includes(`${target} (types)`)),
    why,
  };
}

/** src/gateway/call.ts → gateway, src/config.ts → config; a package keeps its name. */
function unitOf(path: string): Unit {
  return path.startsWith('src/') ? (path.split('/')[1] ?? '').replace(/(\.test)?\.ts$/, '') : path;
}

function describeImport({ file, line, target }: Import): string {
  return `${file}:${line} imports ${target}`;
}

function isOurs({ target }: Import): boolean {
  return target.startsWith('src/');
}

/** The imports that lead from a unit or a file back to itself. */
function findCycle(edges: Import[], nodeOf: (file: string) => string): Import[] | undefined {
  const edgesOf = Map.groupBy(edges, ({ file }) => nodeOf(file));
  const finished = new Set<string>();
  const visit = (node: string, path: Import[]): Import[] | undefined => {
    const start = path.findIndex(({ file }) => nodeOf(file) === node);
    if (start >= 0) return path.slice(start);
    if (finished.has(node)) return undefined;
    for (const edge of edgesOf.get(node) ?? []) {
      const cycle = visit(nodeOf(edge.target), [...path, edge]);
      if (cycle !== undefined) return cycle;
    }
    finished.add(node);
    return undefined;
  };
  for (const node of edgesOf.keys()) {
    const cycle = visit(node, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
