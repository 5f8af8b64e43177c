import { describe, expect, it } from 'vitest';
import { importsOf } from './imports.ts';

describe('the import scanner', () => {
  it('finds static, dynamic and re-exporting imports with their lines', () => {
    const text = [
      "import { a } from './a.ts';",
      "import type { B } from '../b.ts';",
      "import { type C, type D } from './c.ts';",
      "import './side-effect.ts';",
      "export * from './e.ts';",
      'import {',
      '  f,',
      "} from 'node:fs';",
      "const later = await import('./later.ts');",
    ].join('\n');
    expect(
      importsOf('src/x/file.ts', text).map(({ line, target, typeOnly }) => [line, target, typeOnly]),
    ).toEqual([
      [1, 'src/x/a.ts', false],
      [2, 'src/b.ts', true],
      [3, 'src/x/c.ts', true],
      [4, 'src/x/side-effect.ts', false],
      [5, 'src/x/e.ts', false],
      [6, 'node:fs', false],
      [9, 'src/x/later.ts', false],
    ]);
  });

  it('ignores comments and other code', () => {
    const text = [
      "// import './a.ts';",
      "/* import './b.ts' */",
      "const url = 'http://from'; export const c = 'd';",
    ];
    expect(importsOf('src/file.ts', text.join('\n'))).toEqual([]);
  });
});
