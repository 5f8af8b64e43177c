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
 * lack least of what the client prefers. Among equals by turns, over those that have room; where none has, the least loaded.
 * There is at least one candidate. `lack` is from 0, for all that is preferred, to less than 1.
 */
export function choose<Replica extends Candidate>(
  candidates: readonly Replica[],
  turn: number,
  lack: ((candidate: Replica) => number) | undefined,
): Replica {
  const rank = (candidate: Replica): number =>
    (candidate.isEjected ? 2 : 0) + (candidate.isLive ? 0 : 1) + (lack?.(candidate) ?? 0);
  let best = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) best = Math.min(best, rank(candidate));
  const equals = candidates.filter((candidate) => rank(candidate) === best);
  const withRoom = equals.filter(({ hasRoom }) => hasRoom);
  if (withRoom.length > 0) return withRoom[turn % withRoom.length]!;
  return equals.reduce((least, candidate) => (candidate.load < least.load ? candidate : least));
}
