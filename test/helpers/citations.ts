import { lineAt, withoutComments } from './source.ts';

interface Citation {
  id: string;
  file: string;
  line: number;
}

// A title is the first argument of describe, it or test, or of the functions that each, skipIf and the like return.
const title =
  /(?:\b(?:describe|it|test)((?:\s*\.\s*\w+)*)\s*\(|\)\s*\()\s*(?:'((?:\\.|[^'\\\n])*)'|"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`)/g;
const ids = /\[([A-Z]\d+(?:[,\s]+[A-Z]\d+)*)\]/g;

/** Skipped tests (skip, todo) cite nothing. */
export function citationsIn(file: string, text: string): Citation[] {
  const code = withoutComments(text);
  return [...code.matchAll(title)].flatMap((match) => {
    const [, modifiers = '', single, double, template] = match;
    if (/\.\s*(skip|todo|fails)\b/.test(modifiers)) return [];
    const line = lineAt(code, match.index);
    return [...(single ?? double ?? template ?? '').matchAll(ids)]
      .flatMap(([, list = '']) => list.split(/[,\s]+/))
      .map((id) => ({ id, file, line }));
  });
}
