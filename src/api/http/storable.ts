import { invalidInput, MAX_PROBLEMS, type Problem } from './problems.ts';

/** Nothing that we take is nested deeper, and what reads it later may not take more. */
const MAX_DEPTH = 64;
const tooDeep: Problem = { path: [], message: `The body is nested deeper than ${MAX_DEPTH} levels` };

/** Refuses data that JSON can say and the database cannot keep: it has no NUL in texts, and no halves of characters. */
export function checkStorable(value: unknown): void {
  const problems: Problem[] = [];
  collect(value, [], problems);
  if (problems.length > 0) throw invalidInput(problems);
}

/** Refuses what is nested too deep, and nothing else. */
export function checkDepth(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth === MAX_DEPTH) throw invalidInput([tooDeep]);
  for (const part of Object.values(value)) checkDepth(part, depth + 1);
}

/** `path` is the way to the value, and the same list for all of them: most bodies are fine, and some are large. */
function collect(value: unknown, path: PropertyKey[], problems: Problem[]): void {
  if (typeof value === 'string') {
    judge(value, path, problems);
  } else if (typeof value === 'object' && value !== null) {
    if (path.length === MAX_DEPTH) {
      problems.push(tooDeep);
      return;
    }
    const isList = Array.isArray(value);
    for (const key of Object.keys(value)) {
      if (problems.length >= MAX_PROBLEMS) return;
      judge(key, path, problems);
      path.push(isList ? Number(key) : key);
      collect((value as Record<string, unknown>)[key], path, problems);
      path.pop();
    }
  }
}

function judge(text: string, path: PropertyKey[], problems: Problem[]): void {
  if (text.includes('\0')) problems.push({ path: [...path], message: 'must not contain a NUL character' });
  if (!text.isWellFormed()) {
    problems.push({ path: [...path], message: 'must not contain half of a surrogate pair' });
  }
}
