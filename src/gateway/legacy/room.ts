import { SwitchboardError } from '../../errors.ts';
import type { Principal } from '../../identity/principal.ts';
import type { Session } from './caller.ts';

interface SessionLimits {
  maxSessions: number;
  maxSessionsPerPrincipal: number;
}

/** The sessions that have to end before this principal gets another one. Throws if none of them may. */
export function sessionsInTheWay(
  sessions: Iterable<Session>,
  principal: Principal,
  { maxSessions, maxSessionsPerPrincipal }: SessionLimits,
): Set<Session> {
  const ending = new Set<Session>();
  const all = [...sessions];
  if (principal.kind !== 'local') {
    const own = all.filter((session) => session.principal === principal);
    const why = `You have ${own.length} sessions, the most for one sender (setting maxSessionsPerPrincipal).`;
    if (own.length >= maxSessionsPerPrincipal) ending.add(longestIdle(own, why));
  }
  if (all.length - ending.size >= maxSessions)
    ending.add(longestIdle(all, `All ${maxSessions} sessions are in use (setting maxSessions).`));
  return ending;
}

/** The session that was idle for longest and has no open stream. */
function longestIdle(sessions: Iterable<Session>, otherwise: string): Session {
  let oldest: Session | undefined;
  for (const session of sessions) {
    if (session.isBusy || session.stream.isOpen) continue;
    if (oldest === undefined || session.lastSeen < oldest.lastSeen) oldest = session;
  }
  if (oldest === undefined) throw new SwitchboardError('too_many_sessions', otherwise);
  return oldest;
}
