import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'];

it('packs the program, its documents and nothing else', async () => {
  const words = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await promisify(execFile)('npm', words, { cwd: root, maxBuffer: 16 * 1024 * 1024 });
  const packed = Object.values(JSON.parse(stdout) as { files: { path: string }[] }[])[0]!;
  const paths = packed.files.map(({ path }) => path);
  expect(paths.filter((path) => !/^(?:bin|dist)\//.test(path)).toSorted()).toEqual(papers);
  expect(paths).toContain('bin/switchboard.js');
});
