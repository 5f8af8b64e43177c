import { SwitchboardError } from '../errors.ts';
import { FailureLog } from './log.ts';

interface HealthRules {
  /** So many failed calls in a row, and the replica is left out for a while; 0: never. */
  ejectAfter: number;
  ejectMs: number;
}

/** How the calls of one replica fare: whether it is left out for a while, and what its log says of them. */
export class Health {
  private readonly rules: HealthRules;
  private readonly failures: FailureLog;
  private failedInRow = 0;
  private hasFailed = false;
  private ejectedUntil = 0;

  constructor(rules: HealthRules, log: (line: string) => void) {
    this.rules = rules;
    this.failures = new FailureLog('calls', log);
  }

  get isEjected(): boolean {
    return this.ejectedUntil > 0 && this.ejectedUntil > Date.now();
  }

  /** True where it was left out until now. */
  succeeded(): boolean {
    if (!this.hasFailed) return false;
    this.failedInRow = 0;
    this.hasFailed = false;
    this.logCounts();
    return this.readmit();
  }

  /** A call went out and did not come back as it should. Gives why and until when, where it is left out from now on. */
  failed(error: SwitchboardError): { reason: SwitchboardError; nextTry: number } | undefined {
    this.note(error);
    this.failedInRow++;
    const { ejectAfter, ejectMs } = this.rules;
    if (ejectAfter === 0 || this.failedInRow < ejectAfter || this.isEjected) return undefined;
    this.ejectedUntil = Date.now() + ejectMs;
    const why = `${this.failedInRow} calls in a row failed: ${error.message}`;
    return { reason: new SwitchboardError('server_unavailable', why), nextTry: this.ejectedUntil };
  }

  /** The same, but nothing that is to be held against it. */
  note(error: SwitchboardError): void {
    this.hasFailed = true;
    this.failures.add(error);
  }

  /** True where it was left out until now. */
  readmit(): boolean {
    const wasEjected = this.ejectedUntil > 0;
    this.ejectedUntil = 0;
    return wasEjected;
  }

  /** It begins anew, whatever was before. */
  reset(): void {
    this.failedInRow = 0;
    this.readmit();
  }

  logCounts(): void {
    this.failures.tellCount();
  }
}
