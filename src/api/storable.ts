import { invalidInput, type Problem } from './problems.ts';

/** Nothing that we take is nested deeper, and what reads it later may not take more. */
const MAX_DEPTH = 64;

/** Refuses data that JSON can say and the database cannot keep: it has no NUL in texts, and no halves of characters. */
export function checkStorable(value: unknown): void {
  const problems = unstorable(value, []);
  if (problems.length > 0) throw invalidInput(problems);
}

function unstorable(value: unknown, path: PropertyKey[]): Problem[] {
  if (typeof value === 'string') return textProblems(value, path);
  if (typeof value !== 'object' || value === null) return [];
  if (path.length === MAX_DEPTH) {
    return [{ path: [], message: `The body is nested deeper than ${MAX_DEPTH} levels` }];
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => unstorable(item, [...path, index]));
  return Object.entries(value).flatMap(([key, part]) => {
    const inKey = textProblems(key, path);
    return inKey.length > 0 ? inKey : unstorable(part, [...path, key]);
  });
}

function textProblems(text: string, path: PropertyKey[]): Problem[] {
  const problems: Problem[] = [];
  if (text.includes('\0')) problems.push({ path, message: 'must not have a NUL character in it' });
  if (!text.isWellFormed()) problems.push({ path, message: 'must not have half of a surrogate pair in it' });
  return problems;
}
