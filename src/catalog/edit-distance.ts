/**
 * How many characters must be added, removed, replaced, or exchanged with their neighbour to make one text of the other; undefined where
 * it is more than `most`.
 */
export function editDistance(one: string, other: string, most: number): number | undefined {
  if (Math.abs(one.length - other.length) > most) return undefined;
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let line = 1; line <= one.length; line++) {
    const next = [line];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[line - 1] === other[column - 1];
      let least = Math.min(row[column - 1]! + (isSame ? 0 : 1), row[column]! + 1, next[column - 1]! + 1);
      const isExchanged = one[line - 1] === other[column - 2] && one[line - 2] === other[column - 1];
      if (line > 1 && column > 1 && isExchanged) least = Math.min(least, before[column - 2]! + 1);
      next.push(least);
    }
    if (Math.min(...next) > most) return undefined;
    [before, row] = [row, next];
  }
  const distance = row.at(-1)!;
  return distance > most ? undefined : distance;
}
