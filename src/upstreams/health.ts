import { SwitchboardError } from '../errors.ts';

interface HealthRules {
  /** So many failed calls in a row, and the replica is left out for a while; 0: never. */
  ejectAfter: number;
  ejectMs: number;
}

/** So many failed calls in a row have a line each in the log; the others are counted. */
const LOGGED_FAILURES = 5;

/** How the calls of one replica fare: whether it is left out for a while, and what its log says of them. */
export class Health {
  private readonly rules: HealthRules;
  private readonly log: (line: string) => void;
  private failedInRow = 0;
  private logged = 0;
  private ejectedUntil = 0;
  /** Calls of which the log says nothing yet. */
  private uncounted = { refused: 0, failed: 0 };

  constructor(rules: HealthRules, log: (line: string) => void) {
    this.rules = rules;
    this.log = log;
  }

  get isEjected(): boolean {
    return this.ejectedUntil > 0 && this.ejectedUntil > Date.now();
  }

  /** True where it was left out until now. */
  succeeded(): boolean {
    if (this.logged === 0) return false;
    this.failedInRow = 0;
    this.logged = 0;
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
    if (this.logged++ < LOGGED_FAILURES) this.log(`a call failed: ${error.message}`);
    else this.uncounted.failed++;
  }

  /** A call was not even sent. Only counted: a client in a loop must not push everything else out of the log. */
  refused(): void {
    this.uncounted.refused++;
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
    const { refused, failed } = this.uncounted;
    if (failed > 0) this.log(`${failed} more calls failed`);
    if (refused > 0) this.log(`${refused} calls were refused meanwhile`);
    this.uncounted = { refused: 0, failed: 0 };
  }
}
