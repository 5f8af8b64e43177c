/** What has to be known of a replica to choose one. */
export interface Candidate {
  /** Connected: a call can go out now. */
  readonly isLive: boolean;
  /** Left out for a while, because too many calls failed. */
  readonly isEjected: boolean;
  /** A call need not wait for others. */
  readonly hasRoom: boolean;
  /** Calls under way and waiting. */
  readonly load: number;
}

/**
 * The candidate that is to take a call: healthy ones before ejected ones, of these the connected ones, of these those that
 * the client prefers. Among equals by turns, over those that have room; where none has, the least loaded.
 * There is at least one candidate.
 */
export function choose<Replica extends Candidate>(
  candidates: readonly Replica[],
  turn: number,
  isPreferred: ((candidate: Replica) => boolean) | undefined,
): Replica {
  const rank = (candidate: Replica): number => {
    const isSecond = isPreferred !== undefined && !isPreferred(candidate);
    return (candidate.isEjected ? 4 : 0) + (candidate.isLive ? 0 : 2) + (isSecond ? 1 : 0);
  };
  let best = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) best = Math.min(best, rank(candidate));
  const equals = candidates.filter((candidate) => rank(candidate) === best);
  const withRoom = equals.filter(({ hasRoom }) => hasRoom);
  if (withRoom.length > 0) return withRoom[turn % withRoom.length]!;
  return equals.reduce((least, candidate) => (candidate.load < least.load ? candidate : least));
}
