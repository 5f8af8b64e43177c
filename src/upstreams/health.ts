import { SwitchboardError } from '../errors.ts';
import { FailureLog } from './log.ts';

interface HealthRules {
  /** This many failed calls in a row eject the replica for a while; 0: never. */
  ejectAfter: number;
  ejectMs: number;
}

/** The health of the calls of one replica: ejects it after many failures, and logs them. */
export class Health {
  private readonly rules: HealthRules;
  private readonly failures: FailureLog;
  private failedInRow = 0;
  private ejectedUntil = 0;
  /** Whether a call failed since the last one that succeeded. */
  hasFailed = false;

  constructor(rules: HealthRules, log: (line: string) => void) {
    this.rules = rules;
    this.failures = new FailureLog('calls', log);
  }

  get isEjected(): boolean {
    return this.ejectedUntil > 0 && this.ejectedUntil > Date.now();
  }

  /** Returns whether the replica was ejected until now. */
  succeeded(): boolean {
    this.failedInRow = 0;
    this.hasFailed = false;
    this.logCounts();
    return this.readmit();
  }

  /** A call was sent and failed. Returns the reason and the end of an ejection that starts now. */
  failed(error: SwitchboardError): { reason: SwitchboardError; nextTry: number } | undefined {
    this.note(error);
    this.failedInRow++;
    const { ejectAfter, ejectMs } = this.rules;
    if (ejectAfter === 0 || this.failedInRow < ejectAfter || this.isEjected) return undefined;
    this.ejectedUntil = Date.now() + ejectMs;
    const why = `${this.failedInRow} calls in a row failed: ${error.message}`;
    return { reason: new SwitchboardError('server_unavailable', why), nextTry: this.ejectedUntil };
  }

  /** Logs a failure that does not count for ejection. */
  note(error: SwitchboardError): undefined {
    this.hasFailed = true;
    this.failures.add(error);
  }

  /** Returns whether the replica was ejected until now. */
  readmit(): boolean {
    const wasEjected = this.ejectedUntil > 0;
    this.ejectedUntil = 0;
    return wasEjected;
  }

  reset(): void {
    this.failedInRow = 0;
    this.readmit();
  }

  logCounts(): void {
    this.failures.flush();
  }
}
