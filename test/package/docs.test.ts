import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { actions, roles } from '../../src/identity/roles.ts';
import { sourceFiles } from '../helpers/source.ts';

const root = join(import.meta.dirname, '../..');
const pages = [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...['docs', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md'))
      .map((path) => join(folder, path)),
  ),
];

describe('links in the documentation', () => {
  it.each(pages)('on %s resolve', (page) => {
    const links = [...withoutCode(read(page)).matchAll(/\]\((?!https?:)([^()\s#]*)(?:#([^()\s]+))?\)/g)];
    const broken = links.filter(([, path = '', anchor]) => !resolves(page, path, anchor));
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  it('lead from docs/README.md to every page', () => {
    const index = read('docs/README.md');
    const missing = pages.filter(
      (page) =>
        page.startsWith('docs/') &&
        page !== 'docs/README.md' &&
        !index.includes(`](${relative('docs', page)}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('the documentation', () => {
  // The changelog describes the past.
  const current = pages.filter((page) => page !== 'CHANGELOG.md');

  it('names only files and folders that exist', () => {
    const missing = current.flatMap((page) =>
      [...read(page).matchAll(/(?<![\w/.-])(?:src|test|bench|scripts|examples)\/[\w./-]*\w/g)]
        .filter(([path]) => !existsSync(join(root, path)))
        .map(([path]) => `${page}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it('names only classes and functions that exist', () => {
    const code = ['src', 'test'].flatMap((folder) => sourceFiles(folder).map(({ text }) => text)).join('\n');
    const pages = ['CONTRIBUTING.md', 'docs/architecture.md', 'docs/request-path.md'];
    const missing = pages.flatMap((page) =>
      [...read(page).matchAll(/`([A-Z]\w*[a-z]\w*|[a-z]+[A-Z]\w*)\b[^`/.]*`/g)]
        .filter(([, name]) => !code.includes(name!))
        .map(([, name]) => `${page}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('names only commands that exist', () => {
    const definitions = sourceFiles('src/cli').flatMap(({ text }) => [
      ...text.matchAll(/(?:\.command\(|add\(|apiCommand\(\s*\w+,\s*)'(\w+)/g),
    ]);
    const commands = new Set(definitions.map(([, command]) => command));
    const unknown = current.flatMap((page) =>
      [...read(page).matchAll(/(?:`|\$ (?:npx )?)switchboard ([a-z]+)/g)]
        .filter(([, command]) => !commands.has(command))
        .map(([usage]) => `${page}: ${usage}`),
    );
    expect(unknown).toEqual([]);
  });
});

describe('the table of roles in docs/access.md', () => {
  it('is that of the decision', () => {
    const rows = roles.map((role) => {
      const own = Object.values(actions).filter((action) => action.role === role);
      return `| \`${role}\` | ${own.map(({ meaning }) => meaning).join('; ')} |`;
    });
    const [, table] =
      /<!-- roles: .* -->\n([\s\S]*)\n<!-- end of roles -->/.exec(read('docs/access.md')) ?? [];
    expect(table?.split('\n').slice(2)).toEqual(rows);
  });
});

describe('the comparison in the README', () => {
  const measured = read('docs/benchmark.md');
  const section = read('README.md').split('\n## Compared with others\n')[1]!.split('\n## ')[0]!;

  it('has the figures of docs/benchmark.md', () => {
    const figures = figuresIn(section);
    expect(figures.size).toBeGreaterThan(20);
    expect([...figures.difference(figuresIn(measured))]).toEqual([]);
  });

  it('has its versions and its number of missed goals', () => {
    for (const [, name, version] of section.matchAll(/\| ([a-z-]+) (\d+\.\d+\.\d+)/g)) {
      expect(measured).toContain(`${name} ${version}`);
    }
    const lines = measured.split('\n## Goals\n')[1]!.split('\n');
    const goals = lines.filter((line) => / \| (?:ok|MISSED) \|$/.test(line));
    const missed = goals.filter((line) => line.endsWith('| MISSED |'));
    expect(section).toContain(`misses ${missed.length} of its own ${goals.length} [goals]`);
  });
});

/** Numbers with their units, regardless of spacing. */
function figuresIn(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/([\d.]+) ?(×|\/s|MB|kB|ms)/g)].map(([, number, unit]) => number! + unit!),
  );
}

function resolves(page: string, path: string, anchor: string | undefined): boolean {
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(root, target))) return false;
  return anchor === undefined || !target.endsWith('.md') || anchorsOf(read(target)).has(anchor);
}

/** The anchors that GitHub generates for headings. */
function anchorsOf(text: string): Set<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{Letter}\p{Number}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '');
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
