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
 * The candidate that is to take a call: healthy ones that the client prefers first, then healthy ones, then ejected ones;
 * of these the connected ones. Among equals by turns, over those that have room; where none has, the least loaded.
 * There is at least one candidate.
 */
export function choose<Replica extends Candidate>(
  candidates: readonly Replica[],
  turn: number,
  isPreferred: ((candidate: Replica) => boolean) | undefined,
): Replica {
  const rank = (candidate: Replica): number => {
    const health = candidate.isEjected ? 2 : isPreferred === undefined || isPreferred(candidate) ? 0 : 1;
    return health * 2 + (candidate.isLive ? 0 : 1);
  };
  let best = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) best = Math.min(best, rank(candidate));
  const equals = candidates.filter((candidate) => rank(candidate) === best);
  const withRoom = equals.filter(({ hasRoom }) => hasRoom);
  if (withRoom.length > 0) return withRoom[turn % withRoom.length]!;
  return equals.reduce((least, candidate) => (candidate.load < least.load ? candidate : least));
}
