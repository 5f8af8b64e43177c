import type { AwayRule, DriverPool } from './provisioner.ts';
import type { RestartRules } from './restart-policy.ts';
import type { StatusEvents } from './status-reporter.ts';

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
export interface Surroundings extends DriverPool, StatusEvents {
  running(id: string): void;
}
