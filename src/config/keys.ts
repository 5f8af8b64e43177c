import type { ServerEntry } from './entry.ts';
import { MAX_PROBLEMS } from './problems.ts';

/** Keys of other programs that are ignored here. */
const foreignKeys = new Set(
  [
    'alwaysAllow auth autoApprove description dev disabledTools displayName excludeTools gallery icon iconUrl id',
    'includeTools metadata name note notes oauth sandbox sandboxEnabled source tags timeout transportType trust version',
  ].flatMap((line) => line.split(' ')),
);

/** What other programs call our keys. */
const synonyms: Record<string, keyof ServerEntry> = {
  cmd: 'command',
  arguments: 'args',
  environment: 'env',
  serverUrl: 'url',
  httpUrl: 'url',
  endpoint: 'url',
  transport: 'type',
  workingDirectory: 'cwd',
  maxConcurrency: 'concurrency',
  timeout_ms: 'timeoutMs',
  instances: 'replicas',
};

export interface UnknownKey {
  key: string;
  meant?: string;
}

export function synonymOf(key: string): keyof ServerEntry | undefined {
  return Object.hasOwn(synonyms, key) ? synonyms[key] : undefined;
}

export function isForeignKey(key: string): boolean {
  return foreignKeys.has(key) || /^(\$|_|\/\/)/.test(key);
}

/** Each unknown key, with the known key that was probably meant. */
export function unknownKeys(keys: string[], known: string[]): UnknownKey[] {
  const candidates = [
    ...known,
    ...Object.keys(synonyms).filter((key) => known.includes(synonyms[key] ?? '')),
  ];
  return keys
    .filter((key) => !known.includes(key))
    .slice(0, MAX_PROBLEMS)
    .map((key) => {
      const match = similarTo(key, candidates);
      return match === undefined ? { key } : { key, meant: synonymOf(match) ?? match };
    });
}

/** The closest candidate, if the word is probably a misspelling of it. */
export function similarTo(word: string, candidates: readonly string[]): string | undefined {
  const plain = simplified(word);
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(plain, simplified(candidate)) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(candidate.length / 3)))
    .toSorted((left, right) => left.distance - right.distance);
  return ranked[0]?.candidate;
}

/** Makes timeoutMs, TIMEOUT-MS and timeout_ms equal. */
function simplified(word: string): string {
  return word.slice(0, 64).toLowerCase().replace(/[_-]/g, '');
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [index, character] of [...left].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = row[column - 1]! + (right[column - 1] === character ? 0 : 1);
      next.push(Math.min(replaced, row[column]! + 1, next[column - 1]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}
