import { posix } from 'node:path';
import { lineAt, withoutComments } from './source.ts';

export interface Import {
  file: string;
  line: number;
  /** A path from the project's root for a relative import, else the package name. */
  target: string;
  typeOnly: boolean;
}

const staticImport = /\b(import|export)\s+(type\s+)?((?:[\w*$\s,]|\{[^}]*\})*?\bfrom\s*)?(['"])([^'"\n]+)\4/g;
const dynamicImport = /\bimport\s*\(\s*(['"`])([^'"`\n]+)\1/g;

export function importsOf(file: string, text: string): Import[] {
  const code = withoutComments(text);
  const found: Import[] = [];
  for (const match of code.matchAll(staticImport)) {
    const [, , typeKeyword, clause = '', , specifier = ''] = match;
    found.push({
      file,
      line: lineAt(code, match.index),
      target: resolve(file, specifier),
      typeOnly: typeKeyword !== undefined || onlyTypes(clause),
    });
  }
  for (const match of code.matchAll(dynamicImport)) {
    const target = resolve(file, match[2] ?? '');
    found.push({ file, line: lineAt(code, match.index), target, typeOnly: false });
  }
  return found.toSorted((left, right) => left.line - right.line);
}

function onlyTypes(clause: string): boolean {
  const members = /^\{([^}]*)\}\s*from\s*$/.exec(clause.trimStart())?.[1];
  if (members === undefined) return false;
  const names = members.split(',').map((name) => name.trim());
  return names.filter((name) => name !== '').every((name) => name.startsWith('type '));
}

function resolve(file: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier) : specifier;
}
