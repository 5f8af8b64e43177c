import type { Audience } from './appearance.ts';
import type { RestartRules } from './restart-policy.ts';
import type { AwayRule, DriverPool } from './supply.ts';

export interface Timing {
  restarts: RestartRules;
  /** Between SIGTERM and SIGKILL, when Switchboard stops. */
  stopGraceMs: number;
  /** The same where only this server is stopped, or restarted. */
  restartGraceMs: number;
  /** So long somebody who wants to speak with a server waits for its start. */
  attachMs: number;
  away: AwayRule;
}

/** What a server needs of those who look after all of them. */
export interface Surroundings extends DriverPool, Audience {
  running(id: string): void;
}
