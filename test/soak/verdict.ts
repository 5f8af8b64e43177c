import type { RpcMessage } from '../helpers/raw-http.ts';
import type { Target } from './fleet.ts';

export interface PlannedCall {
  kind: 'echo' | 'count' | 'later';
  target: Target;
  text: string;
}

interface Tally {
  calls: number;
  answered: number;
  failed: number;
}

/** Only this many keep their text; the rest are counted. */
const MAX_KEPT = 50;

export class Verdict {
  readonly violations: string[] = [];
  readonly errors = new Map<string, number>();
  readonly byTarget = new Map<string, Tally>();
  violationCount = 0;
  lists = 0;
  cancelled = 0;
  /** The keys of all calls with a side effect, and whether they returned a result. */
  private readonly counted = new Map<string, boolean>();

  violation(what: string): void {
    this.violationCount++;
    if (this.violations.length < MAX_KEPT) this.violations.push(what);
  }

  get total(): Tally {
    const sum = { calls: 0, answered: 0, failed: 0 };
    for (const { calls, answered, failed } of this.byTarget.values()) {
      sum.calls += calls;
      sum.answered += answered;
      sum.failed += failed;
    }
    return sum;
  }

  /** Call this before sending, because every execution must have been planned. */
  planned({ kind, target, text }: PlannedCall): void {
    this.tallyOf(target).calls++;
    if (kind === 'count') this.counted.set(text, false);
  }

  judge(call: PlannedCall, answers: RpcMessage[]): void {
    const [answer] = answers;
    if (answers.length > 1) this.violation(`${nameOf(call)} was answered ${answers.length} times`);
    if (answer?.error !== undefined) this.judgeError(call, answer.error);
    else if (call.kind === 'later') this.judgeCancelled(call, answer);
    else if (answer === undefined) this.violation(`${nameOf(call)} was not answered`);
    else this.judgeResult(call, answer);
  }

  lost(call: PlannedCall, why: string): void {
    this.violation(`${nameOf(call)} was not answered: ${why}`);
  }

  /** Servers that are down stay in the list. */
  judgeList(answers: RpcMessage[], expected: readonly string[]): void {
    this.lists++;
    const tools = (answers[0]?.result?.tools ?? []) as { name: string }[];
    const names = new Set(tools.map(({ name }) => name));
    const missing = expected.filter((name) => !names.has(name));
    if (answers.length !== 1) this.violation(`a list was answered ${answers.length} times`);
    else if (missing.length > 0) this.violation(`a list lacks ${missing.join(', ')}`);
  }

  /** Checks the executions that servers recorded, one per line. */
  judgeLedger(lines: readonly string[]): void {
    const executions = new Map<string, number>();
    for (const line of lines) {
      const { key } = JSON.parse(line) as { key: string };
      executions.set(key, (executions.get(key) ?? 0) + 1);
    }
    for (const [key, times] of executions) {
      if (times > 1) this.violation(`${key} was executed ${times} times`);
      if (!this.counted.has(key)) this.violation(`${key} was executed, but nobody called it`);
    }
    for (const [key, isAnswered] of this.counted) {
      if (isAnswered && !executions.has(key)) this.violation(`${key} was answered, but never executed`);
    }
  }

  private judgeResult(call: PlannedCall, { result = {} }: RpcMessage): void {
    const { text, name } = echoOf(result);
    if (text !== call.text || !call.target.members.includes(name)) {
      this.violation(`${nameOf(call)} got another answer than its own: ${JSON.stringify(result)}`);
      return;
    }
    this.tallyOf(call.target).answered++;
    if (call.kind === 'count') this.counted.set(call.text, true);
  }

  private judgeError(call: PlannedCall, error: NonNullable<RpcMessage['error']>): void {
    const { kind, target } = call;
    const shown = `${nameOf(call)} got ${JSON.stringify(error)}`;
    const names = [...target.members, target.prefix.replace(/__$/, '')];
    const isClear =
      Number.isInteger(error.code) && names.some((name) => error.message?.includes(`"${name}"`));
    if (!isClear) this.violation(`${shown}, which does not say what is wrong with which server`);
    const mustSucceed = target.isHealthy || (target.isSteady && kind === 'echo');
    if (mustSucceed) this.violation(`${shown}, though nothing was done to that server`);
    // Faults are noticed at once, so a timeout means that a call was forgotten.
    if (error.data?.code === 'call_timeout') this.violation(`${shown}, though no server hangs`);
    this.tallyOf(target).failed++;
    const code = `${error.code} ${error.data?.code ?? ''}`.trim();
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  }

  private judgeCancelled(call: PlannedCall, answer: RpcMessage | undefined): void {
    if (answer === undefined) this.cancelled++;
    else this.violation(`${nameOf(call)} was cancelled and still answered: ${JSON.stringify(answer)}`);
  }

  private tallyOf({ prefix }: Target): Tally {
    let tally = this.byTarget.get(prefix);
    if (tally === undefined) {
      tally = { calls: 0, answered: 0, failed: 0 };
      this.byTarget.set(prefix, tally);
    }
    return tally;
  }
}

function nameOf({ kind, target, text }: PlannedCall): string {
  return `${target.prefix}${kind} "${text}"`;
}

/** The content of an echo; empty for other results. */
function echoOf(result: Record<string, unknown>): { text: string; name: string } {
  try {
    const [{ text }] = result.content as [{ text: string }];
    return JSON.parse(text) as { text: string; name: string };
  } catch {
    return { text: '', name: '' };
  }
}
