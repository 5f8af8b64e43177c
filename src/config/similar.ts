/** The word that was probably meant, if one is close. */
export function similarTo(word: string, candidates: readonly string[]): string | undefined {
  const plain = simplified(word);
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(plain, simplified(candidate)) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(candidate.length / 3)))
    .toSorted((left, right) => left.distance - right.distance);
  return ranked[0]?.candidate;
}

/** timeoutMs, TIMEOUT-MS and timeout_ms are one word. What is much longer than any of ours is like none of them. */
function simplified(word: string): string {
  return word.slice(0, 64).toLowerCase().replace(/[_-]/g, '');
}

/** Levenshtein's: how many characters must be added, removed or replaced. */
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
